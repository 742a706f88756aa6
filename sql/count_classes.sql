-- Count the rows of each class, by node and by value, for every attribute of some trees at once.
-- inputs: the TEMP table of codes, the node_classes to count as constants (none: all from one on);
-- outputs: one row per cell that holds rows (empty cells are filled in before any noise is drawn);
-- a node_class is a node times the number of classes, plus a class
-- reads private rows: yes
{% if wanted %}
WITH wanted AS (
  SELECT CAST({{ wanted }} AS {{ node_class_type }}) AS "node_class"
)
{% for node_class in node_classes %}
, {{ node_class.rows }} AS MATERIALIZED (
  SELECT {% for word in words %}c.{{ word }}, {% endfor %}c.{{ node_class.column }}
  FROM {{ codes }} AS c
  JOIN wanted ON wanted."node_class" = c.{{ node_class.column }}
)
{% endfor %}
{% endif %}
{% for node_class in node_classes %}
{% set each = loop %}
{% for block in blocks %}
SELECT {{ block.index }} AS "block", {{ node_class.column }} AS "node_class", {{ block.code }} AS "value", COUNT(*) AS "rows"
{% if wanted %}
FROM {{ node_class.rows }}
{% else %}
FROM {{ codes }}
WHERE {{ node_class.column }} >= {{ first }}
{% endif %}
GROUP BY {{ node_class.column }}, {{ block.code }}
{% if not (each.last and loop.last) %}
UNION ALL
{% endif %}
{% endfor %}
{% endfor %}
