-- Count the rows of each class in every combination of the labels that trees give them.
-- inputs: the TEMP table of codes at the leaves of every tree, the labels of their nodes as
-- constants
-- outputs: one row per combination and class that holds rows
-- node_class = node * classes + class; node n > 0 of a tree is number shift + n
-- reads private rows: yes
SELECT
{% for tree in trees %}
  {{ tree.labels }}[greatest(CAST({{ tree.node_class }} // {{ classes }} AS BIGINT) - {{ tree.shift }}, 0) + 1] AS {{ tree.label }},
{% endfor %}
  {{ trees[0].node_class }} % {{ classes }} AS "class",
  COUNT(*) AS "rows"
FROM {{ codes }}
GROUP BY ALL
