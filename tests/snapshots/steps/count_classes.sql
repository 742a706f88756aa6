-- Count the rows of each class, by node and value, for every attribute of some trees at once.
-- For pairs of values, nodes are the bins of one attribute.
-- inputs: the TEMP table of codes; the node_classes to count, or the first of them
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- node_class = node * classes + class
-- reads private rows: yes
-- colour, size
SELECT 0 AS "block", "node_class0" AS "node_class", CAST("codes0" & 31 AS UTINYINT) AS "value", COUNT(*) AS "rows"
FROM "temp"."main"."dpforest_000000_0"
GROUP BY "node_class", "value"
