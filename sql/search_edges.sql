-- Find the bins of numbers with many edges by binary search: a CASE of so many takes long to plan.
-- The number of edges below a value is the sum of halving steps. The first ones are a short CASE, and
-- the fewer edges a column has, the fewer steps follow. An index beyond the last edge gives NULL, so
-- that step adds nothing.
-- inputs: the private table, the edges of some columns
-- outputs: its rows, with such a number for each of these columns
-- reads private rows: yes
WITH search{{ first_step }} AS (
  SELECT
    *,
{% for list in lists %}
    {{ list.value }} AS {{ list.name }},
{% endfor %}
{% for found in searched %}
    {{ found.start }} AS {{ found.below }}{{ loop | comma }}
{% endfor %}
  FROM {{ source }}
)
{# EXCLUDE, because a REPLACE of many columns takes longer to plan #}
{% for step, some in layers %}
, search{{ step }} AS (
  SELECT
    * EXCLUDE ({{ some | map(attribute="below") | join(", ") }}),
{% for found in some %}
    {{ found.below }} + CASE WHEN {{ found.column }} > {{ found.edges }}[{{ found.below }} + {{ step }}] THEN {{ step }} ELSE 0 END AS {{ found.below }}{{ loop | comma }}
{% endfor %}
  FROM search{{ 2 * step }}
)
{% endfor %}
SELECT * FROM search1
