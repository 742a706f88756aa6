-- Count the rows of each class in every node from a first one on: leaves, or the nodes of a depth.
-- inputs: the coded rows
-- outputs: one row per node and class that has rows
-- reads private rows: yes
SELECT `node`, `class`, COUNT(*) AS `rows`
FROM {{ nodes }}
WHERE `node` >= {{ first }}
GROUP BY `node`, `class`
