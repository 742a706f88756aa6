-- Count the rows of each class by the bins of their scores; a score is a sum of leaf votes.
-- inputs: the TEMP table of codes, the votes of every node as constants
-- outputs: one row per combination of bins and class that has rows
-- reads private rows: yes
WITH scored AS (
  SELECT
    CAST(0 AS BIGINT) + v."score0"[c."node_class0" // 2 + 1] AS "score0",
    c."node_class0" % 2 AS "class"
  FROM "temp"."main"."dpforest_000002_0" AS c, (
    SELECT
      CAST('[10]' AS BIGINT[]) AS "score0"
  ) AS v
)
SELECT
  CAST(s."score0" > 0 AS INTEGER) + CAST(s."score0" > 5 AS INTEGER) AS "bin0",
  s."class",
  COUNT(*) AS "rows"
FROM scored AS s
GROUP BY ALL
