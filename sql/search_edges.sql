-- Find the bins of numbers with many edges by binary search: a CASE of so many takes long to plan.
-- The number of edges below a value starts at 0 and grows by halving steps. An index beyond the last
-- edge gives NULL, so that step adds nothing.
-- inputs: the private table, the edges of some columns
-- outputs: its rows, with such a number for each of these columns
-- reads private rows: yes
{% for step in steps %}
SELECT * REPLACE (
{% for found in searched %}
  {{ found.below }} + CASE WHEN {{ found.column }} > {{ found.edges }}[{{ found.below }} + {{ step }}] THEN {{ step }} ELSE 0 END AS {{ found.below }}{% if not loop.last %},{% endif %}

{% endfor %}
)
FROM (
{% endfor %}
SELECT
  *,
{% for found in searched %}
  0 AS {{ found.below }},
  {{ found.constants }} AS {{ found.edges }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ source }}
{% for step in steps %}
)
{% endfor %}
