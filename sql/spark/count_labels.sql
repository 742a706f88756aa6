-- Count the rows of each class in every combination of the labels that trees give them.
-- inputs: the coded rows with the leaf of each tree, the labels of the nodes as constant arrays
-- outputs: one row per combination and class that holds rows
-- reads private rows: yes
SELECT
{% for tree in trees %}
  {{ tree.column }},
{% endfor %}
  `class`,
  COUNT(*) AS `rows`
FROM (
  SELECT
{% for tree in trees %}
    get({{ tree.labels }}, {{ tree.leaf }}) AS {{ tree.column }},
{% endfor %}
    `class`
  FROM {{ codes | indent(2) }}
)
GROUP BY {% for tree in trees %}{{ tree.column }}, {% endfor %}`class`
