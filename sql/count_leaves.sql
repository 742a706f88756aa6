-- Count the rows of each class in every node from one on: leaves, or a depth that is not split.
-- inputs: the TEMP table of codes; outputs: one row per node and class that holds rows, as a node_class:
-- the node times the number of classes, plus the class
-- reads private rows: yes
{% for node_class in node_classes %}
SELECT {{ node_class }} AS "node_class", COUNT(*) AS "rows"
FROM {{ codes }}
WHERE {{ node_class }} >= {{ first }}
GROUP BY {{ node_class }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
