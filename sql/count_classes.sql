-- Count the rows of each class, by node and by value, for every attribute and every tree at once.
-- inputs: the TEMP table of codes; outputs: one row per cell that holds rows (empty cells are
-- filled in before any noise is drawn)
-- reads private rows: yes
{% for node in nodes %}
{% set each = loop %}
{% for block in blocks %}
SELECT
  {{ block.index }} AS "block", {{ node }} AS "node", {{ block.code }} AS "value",
  {{ class }} AS "class", COUNT(*) AS "rows"
FROM {{ codes }}
WHERE {{ node }} >= {{ first }}
GROUP BY {{ node }}, {{ block.code }}, {{ class }}
{% if not (each.last and loop.last) %}
UNION ALL
{% endif %}
{% endfor %}
{% endfor %}
