-- Count the rows of each class in every pair of a bin of one attribute and a value of each attribute.
-- With few rows, planning one GROUP BY for all attributes takes less time than one for each.
-- inputs: the TEMP table of codes, the bins as constants
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- node_class = bin * classes + class; key = (node_class * blocks + block) * values + value
-- reads private rows: yes
WITH paired AS MATERIALIZED (
  SELECT "codes0", (CAST(CAST("codes0" & 7 AS UTINYINT) AS INTEGER) + 0) * 2 + "node_class0" % 2 AS "node_class"
  FROM "temp"."main"."dpforest_000002_0"
)
-- colour, size
SELECT 0 AS "block", "node_class", CAST("codes0" & 31 AS UTINYINT) AS "value", COUNT(*) AS "rows"
FROM paired
GROUP BY "node_class", "value"
