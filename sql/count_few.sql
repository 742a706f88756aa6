-- Count the rows of each class, by node and value, for every attribute of some trees at once, where
-- rows are few: one GROUP BY for all attributes is planned in less time than one for each.
-- For pairs of values, nodes are the bins of one attribute.
-- inputs: the TEMP table of codes; the node_classes to count, or the first of them
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- key = (node_class * blocks + block) * values + value; node_class = node * classes + class
-- reads private rows: yes
{% for node_class in node_classes %}
SELECT "key", COUNT(*) AS "rows"
FROM (
  SELECT unnest([
{% for block in blocks %}
    -- {{ block.names }}
    "first" + {{ block.index * values }} + ({{ block.code }}){{ loop | comma }}
{% endfor %}
  ]) AS "key"
  FROM (
    SELECT {% for word in words %}CAST({{ word }} AS BIGINT) AS {{ word }}, {% endfor %}CAST({{ node_class.column }} AS BIGINT) * {{ blocks | length * values }} AS "first"
    FROM {{ node_class.codes | indent(4) }} AS c
{% if wanted %}
    JOIN (SELECT {{ wanted }} AS "node_class") AS wanted ON wanted."node_class" = c.{{ node_class.column }}
{% elif first %}
    WHERE c.{{ node_class.column }} >= {{ first }}
{% endif %}
  )
)
GROUP BY "key"
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
