-- Count the rows of each class, by node and value, for every attribute of some trees at once, where
-- rows are few: one GROUP BY for all attributes is planned in less time than one for each.
-- For pairs of values, nodes are the bins of one attribute.
-- inputs: the TEMP table of codes; the node_classes to count, or the first of them
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- key = (node_class * blocks + block) * values + value; node_class = node * classes + class
-- reads private rows: yes
SELECT "key", COUNT(*) AS "rows"
FROM (
  SELECT unnest([
    -- colour, size
    "first" + 0 + ("codes0" & 31)
  ]) AS "key"
  FROM (
    SELECT CAST("codes0" AS BIGINT) AS "codes0", CAST("node_class0" AS BIGINT) * 32 AS "first"
    FROM "temp"."main"."dpforest_000002_0" AS c
  )
)
GROUP BY "key"
