-- Count the rows of each class in every node.
-- inputs: the coded rows
-- outputs: one row per node and class that has rows
-- reads private rows: yes
SELECT `node`, `class`, COUNT(*) AS `rows`
FROM {{ nodes }}
GROUP BY `node`, `class`
