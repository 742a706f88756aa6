-- Count the rows of each class in every pair of two attributes' values.
-- inputs: the TEMP table of codes; outputs: one row per pair of values and class that holds rows
-- reads private rows: yes
SELECT
  CAST(("codes0" >> 3) & 3 AS UTINYINT) AS "first",
  CAST("codes0" & 7 AS UTINYINT) AS "second",
  "node_class0" % 2 AS "class",
  COUNT(*) AS "rows"
FROM "temp"."main"."dpforest_000001_0"
GROUP BY ALL
