-- Count the rows of each class in every node from one on: leaves, or a depth that is not split.
-- inputs: the TEMP table of codes; outputs: one row per node and class that holds rows, as a seat:
-- the node times the number of classes, plus the class
-- reads private rows: yes
{% for seat in seats %}
SELECT {{ seat }} AS "seat", COUNT(*) AS "rows"
FROM {{ codes }}
WHERE {{ seat }} >= {{ first }}
GROUP BY {{ seat }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
