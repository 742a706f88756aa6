-- Count the rows of each class, by node and value, for every attribute of some trees at once.
-- For pairs of values, nodes are the bins of one attribute.
-- inputs: the TEMP table of codes; the node_classes to count, or the first of them
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- node_class = node * classes + class
-- reads private rows: yes
{% if materialized %}
WITH
{% if wanted %}
wanted AS (
  SELECT CAST({{ wanted }} AS {{ node_class_type }}) AS "node_class"
),
{% endif %}
{% for node_class in node_classes %}
{{ node_class.rows }} AS MATERIALIZED (
  SELECT {% for word in words %}{{ word }}, {% endfor %}{{ node_class.column }} AS "node_class"
  FROM {{ node_class.codes | indent(2) }} AS c
{% if wanted %}
  JOIN wanted ON wanted."node_class" = c.{{ node_class.column }}
{% elif first %}
  WHERE c.{{ node_class.column }} >= {{ first }}
{% endif %}
){{ loop | comma }}
{% endfor %}
{% endif %}
{% for node_class in node_classes %}
{% set each = loop %}
{% for block in blocks %}
-- {{ block.names }}
SELECT {{ block.index }} AS "block", {% if not materialized %}{{ node_class.column }} AS {% endif %}"node_class", {{ block.code }} AS "value", COUNT(*) AS "rows"
{% if materialized %}
FROM {{ node_class.rows }}
{% else %}
FROM {{ node_class.codes }}
{% if first %}
WHERE {{ node_class.column }} >= {{ first }}
{% endif %}
{% endif %}
GROUP BY "node_class", "value"
{% if not (each.last and loop.last) %}
UNION ALL
{% endif %}
{% endfor %}
{% endfor %}
