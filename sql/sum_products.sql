-- Sum the products of pairs of positions over all rows; a position is a number for each cell.
-- inputs: the TEMP table of codes, the positions as constants
-- outputs: one row with a sum for each pair
-- reads private rows: yes
WITH placed AS (
  SELECT
{% for place in places %}
    {{ place.value }} AS {{ place.name }}{{ loop | comma }}
{% endfor %}
  FROM {{ codes }}
)
SELECT
{% for one, other in pairs %}
  CAST(COALESCE(SUM({{ places[one].name }} * {{ places[other].name }}), 0) AS BIGINT) AS "sum{{ loop.index0 }}"{{ loop | comma }}
{% endfor %}
FROM placed
