-- Sum the products of pairs of positions over all rows; a position is a number for each cell.
-- inputs: the coded rows, the positions as constant arrays
-- outputs: one row with the sums
-- reads private rows: yes
SELECT
{% for one, other in pairs %}
  COALESCE(SUM({{ places[one].name }} * {{ places[other].name }}), 0) AS `sum{{ loop.index0 }}`{{ loop | comma }}
{% endfor %}
FROM (
  SELECT
{% for place in places %}
    {{ place.value }} AS {{ place.name }}{{ loop | comma }}
{% endfor %}
  FROM {{ codes }}
)
