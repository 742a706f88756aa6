-- The different coded rows of one class, how many there are of each, or of one in {{ one_in }} of them.
-- inputs: the coded rows; outputs: cells, class and a number of rows
-- reads private rows: yes
SELECT `cells`, `class`, COUNT(*) AS `rows`
FROM {{ codes }}
{% if one_in > 1 %}
WHERE pmod(xxhash64(`cells`), {{ one_in }}) = 0
{% endif %}
GROUP BY `cells`, `class`
