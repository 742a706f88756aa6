-- Count the rows of each class in every combination of the labels that trees give them.
-- inputs: the TEMP table of codes, the trees as CASE over codes, the labels of their nodes as
-- constants; outputs: one row per combination and class that holds rows
-- reads private rows: yes
SELECT
{% for tree in trees %}
  {{ tree.labels }}[({{ tree.leaf }}) + 1] AS {{ tree.label }},
{% endfor %}
  {{ node_class }} % {{ classes }} AS "class",
  COUNT(*) AS "rows"
FROM {{ codes }}
GROUP BY ALL
