-- Count the rows of each class, by node and by value, for every attribute and every tree at once.
-- inputs: the TEMP table of codes; outputs: one row per cell that holds rows (empty cells are
-- filled in before any noise is drawn); a seat is a node times the number of classes, plus a class
-- reads private rows: yes
{% for seat in seats %}
{% set each = loop %}
{% for block in blocks %}
SELECT {{ block.index }} AS "block", {{ seat }} AS "seat", {{ block.code }} AS "value", COUNT(*) AS "rows"
FROM {{ codes }}
WHERE {{ seat }} >= {{ first }}
GROUP BY {{ seat }}, {{ block.code }}
{% if not (each.last and loop.last) %}
UNION ALL
{% endif %}
{% endfor %}
{% endfor %}
