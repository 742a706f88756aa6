-- Find the bins of numbers with many edges by binary search: a CASE of so many takes long to plan.
-- The number of edges below a value is the sum of halving steps. An index beyond the last edge gives
-- NULL, so that step adds nothing.
-- inputs: the private table, the edges of some columns
-- outputs: its rows, with such a number for each of these columns
-- reads private rows: yes
WITH listed AS (
  SELECT
    *,
{% for found in searched %}
    {{ found.constants }} AS {{ found.edges }}{{ loop | comma }}
{% endfor %}
  FROM {{ source }}
)
, search{{ first_step }} AS (
  SELECT
    *,
{% for found in searched %}
    CASE WHEN {{ found.column }} > {{ found.edges }}[{{ first_step }}] THEN {{ first_step }} ELSE 0 END AS {{ found.below }}{{ loop | comma }}
{% endfor %}
  FROM listed
)
{# EXCLUDE, because a REPLACE of many columns takes longer to plan #}
{% for step in steps %}
, search{{ step }} AS (
  SELECT
    * EXCLUDE ({{ searched | map(attribute="below") | join(", ") }}),
{% for found in searched %}
    {{ found.below }} + CASE WHEN {{ found.column }} > {{ found.edges }}[{{ found.below }} + {{ step }}] THEN {{ step }} ELSE 0 END AS {{ found.below }}{{ loop | comma }}
{% endfor %}
  FROM search{{ 2 * step }}
)
{% endfor %}
SELECT * FROM search1
