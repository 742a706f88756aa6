-- Count the rows of each class in every node from a first one on: leaves, or the nodes of a depth.
-- inputs: the TEMP table of codes
-- outputs: one row per node_class that has rows; node_class = node * classes + class
-- reads private rows: yes
SELECT "node_class0" AS "node_class", COUNT(*) AS "rows"
FROM "temp"."main"."dpforest_000001_1"
WHERE "node_class0" >= 6
GROUP BY "node_class0"
