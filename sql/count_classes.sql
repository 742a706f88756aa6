-- Count the rows of each class, by node and value, for every attribute of some trees at once.
-- For pairs of values, nodes are the bins of one attribute.
-- inputs: the TEMP tables of codes; the first node_class to count
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- node_class = node * classes + class
-- reads private rows: yes
{% for node_class in node_classes %}
{% set each = loop %}
{% for block in blocks %}
-- {{ block.names }}
SELECT {{ block.index }} AS "block", {{ node_class.column }} AS "node_class", {{ block.code }} AS "value", COUNT(*) AS "rows"
FROM {{ node_class.codes }}
{% if first %}
WHERE {{ node_class.column }} >= {{ first }}
{% endif %}
GROUP BY "node_class", "value"
{% if not (each.last and loop.last) %}
UNION ALL
{% endif %}
{% endfor %}
{% endfor %}
