-- Read the least and the largest number of columns, and their different values as text.
-- inputs: the rows; each column, it as a number or date, and what of it must be finite
-- outputs: one row; all_numbers of a column says if each of its values is a number
-- reads private rows: yes
SELECT
{% for column in columns %}
  {
    'low': min({{ column.number }}) FILTER (WHERE isfinite({{ column.finite }})),
    'high': max({{ column.number }}) FILTER (WHERE isfinite({{ column.finite }})),
    'all_numbers': count({{ column.name }}) = count({{ column.number }}),
    'values': list(DISTINCT CAST({{ column.name }} AS VARCHAR)) FILTER (WHERE {{ column.name }} IS NOT NULL)
  }{{ loop | comma }}
{% endfor %}
FROM {{ rows }}
