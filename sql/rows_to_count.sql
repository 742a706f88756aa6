-- Copy the rows that the next statement counts. DuckDB knows the range of a stored node_class, so each
-- GROUP BY takes half of the time or less.
-- For pairs of values, nodes are the bins of one attribute.
-- inputs: the TEMP table of codes; the node_classes to count, or the first of them
-- outputs: a TEMP table of codes and node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE {{ made }} AS
SELECT {% for word in words %}{{ word }}, {% endfor %}{{ node_class.column }} AS "node_class"
FROM {{ node_class.codes }} AS c
{% if wanted %}
JOIN (SELECT CAST({{ wanted }} AS {{ node_class_type }}) AS "node_class") AS wanted ON wanted."node_class" = c.{{ node_class.column }}
{% elif first %}
WHERE c.{{ node_class.column }} >= {{ first }}
{% endif %}
