-- Count the rows of each class in every pair of a bin of one attribute and a value of each attribute.
-- With few rows, planning one GROUP BY for all attributes takes less time than one for each.
-- inputs: the TEMP table of codes, the bins as constants
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- node_class = bin * classes + class; key = (node_class * blocks + block) * values + value
-- reads private rows: yes
{% if few %}
SELECT "key", COUNT(*) AS "rows"
FROM (
  SELECT unnest([
{% for block in blocks %}
    -- {{ block.names }}
    "first" + {{ block.index * values }} + ({{ block.code }}){{ loop | comma }}
{% endfor %}
  ]) AS "key"
  FROM (
    SELECT {% for word in words %}CAST({{ word }} AS BIGINT) AS {{ word }}, {% endfor %}CAST({{ node_class }} AS BIGINT) * {{ blocks | length * values }} AS "first"
    FROM {{ codes }}
  )
)
GROUP BY "key"
{% else %}
WITH paired AS MATERIALIZED (
  SELECT {% for word in words %}{{ word }}, {% endfor %}{{ node_class }} AS "node_class"
  FROM {{ codes }}
)
{% for block in blocks %}
-- {{ block.names }}
SELECT {{ block.index }} AS "block", "node_class", {{ block.code }} AS "value", COUNT(*) AS "rows"
FROM paired
GROUP BY "node_class", "value"
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
{% endif %}
