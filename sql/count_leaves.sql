-- Count the rows of each class in every node from one on: leaves, or a depth that is not split.
-- inputs: the TEMP table of codes; outputs: one row per node and class that holds rows
-- reads private rows: yes
{% for node in nodes %}
SELECT {{ node }} AS "node", {{ class }} AS "class", COUNT(*) AS "rows"
FROM {{ codes }}
WHERE {{ node }} >= {{ first }}
GROUP BY {{ node }}, {{ class }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
