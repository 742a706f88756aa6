-- Count the rows of each class in every combination of the labels that trees give them.
-- inputs: the TEMP table of codes at the leaves of every tree, the labels of their nodes as
-- constants
-- outputs: one row per combination and class that holds rows
-- node_class = node * classes + class; node n > 0 of a tree is number shift + n
-- reads private rows: yes
SELECT
  [0, 0, 1][greatest(CAST("node_class0" // 2 AS BIGINT) - 0, 0) + 1] AS "label0",
  "node_class0" % 2 AS "class",
  COUNT(*) AS "rows"
FROM (
  SELECT
    "codes0",
    CAST(CASE WHEN ("codes0" & 24) = 0 THEN 2 ELSE 4 END + CAST("node_class0" % 2 AS BIGINT) AS UTINYINT) AS "node_class0"
  FROM "temp"."main"."dpforest_000002_0"
)
GROUP BY ALL
