-- Count the rows of each class, by node and by value, for every attribute of some trees at once.
-- inputs: the TEMP table of codes, the seats to count as constants (none: all from one on);
-- outputs: one row per cell that holds rows (empty cells are filled in before any noise is drawn);
-- a seat is a node times the number of classes, plus a class
-- reads private rows: yes
{% if wanted %}
WITH wanted AS (
  SELECT CAST({{ wanted }} AS {{ seat_type }}) AS "seat"
)
{% for seat in seats %}
, {{ seat.rows }} AS MATERIALIZED (
  SELECT {% for word in words %}c.{{ word }}, {% endfor %}c.{{ seat.column }}
  FROM {{ codes }} AS c
  JOIN wanted ON wanted."seat" = c.{{ seat.column }}
)
{% endfor %}
{% endif %}
{% for seat in seats %}
{% set each = loop %}
{% for block in blocks %}
SELECT {{ block.index }} AS "block", {{ seat.column }} AS "seat", {{ block.code }} AS "value", COUNT(*) AS "rows"
{% if wanted %}
FROM {{ seat.rows }}
{% else %}
FROM {{ codes }}
WHERE {{ seat.column }} >= {{ first }}
{% endif %}
GROUP BY {{ seat.column }}, {{ block.code }}
{% if not (each.last and loop.last) %}
UNION ALL
{% endif %}
{% endfor %}
{% endfor %}
