-- Count the rows of each class in every node from a first one on: leaves, or the nodes of a depth.
-- inputs: the TEMP table of codes
-- outputs: one row per node_class that has rows; node_class = node * classes + class
-- reads private rows: yes
{% for node_class in node_classes %}
SELECT {{ node_class.column }} AS "node_class", COUNT(*) AS "rows"
FROM {{ node_class.codes }}
WHERE {{ node_class.column }} >= {{ first }}
GROUP BY {{ node_class.column }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
