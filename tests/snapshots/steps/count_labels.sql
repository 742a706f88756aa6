-- Count the rows of each class in every combination of the labels that trees give them.
-- inputs: the TEMP table of codes, the trees as CASE over codes, the labels of their nodes as
-- constants; outputs: one row per combination and class that holds rows
-- reads private rows: yes
SELECT
  [0, 0, 1][(CASE WHEN CAST(("codes0" >> 3) & 3 AS UTINYINT) = 0 THEN 1 ELSE 2 END) + 1] AS "label0",
  "node_class0" % 2 AS "class",
  COUNT(*) AS "rows"
FROM "temp"."main"."dpforest_000001_0"
GROUP BY ALL
