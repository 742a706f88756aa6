-- Move every row of a split node to the child that its code leads to; other rows stay.
-- inputs: the TEMP table of codes, the splits as constants (see
-- dpforest_duckdb/engine/coded_rows/routing.py)
-- outputs: a new table of codes; node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE {{ made }} AS
SELECT
{% for column in columns %}
  c.{{ column }},
{% endfor %}
{% for move in moves %}
  CAST({{ move.child }} AS {{ type }}) AS {{ move.column }}{{ loop | comma }}
{% endfor %}
FROM {{ codes }} AS c
{% for move in moves if move.figures %}
LEFT JOIN (
  SELECT
{% for figure in move.figures %}
    {{ figure.value }} AS {{ figure.name }}{{ loop | comma }}
{% endfor %}
) AS {{ move.table }} ON {{ move.table }}."node_class" = c.{{ move.column }}
{% endfor %}
