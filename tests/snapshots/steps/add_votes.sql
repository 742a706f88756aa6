-- Add the votes of trees to the scores of every row (log-odds in millionths).
-- inputs: the TEMP table of codes, the trees as CASE over codes, their votes as constants
-- outputs: a new table of codes and scores
-- reads private rows: yes
CREATE TEMP TABLE "temp"."main"."dpforest_000001_1" AS
SELECT
  "codes0",
  "node_class0",
CAST(0 AS BIGINT) + [0, -400000, 600000]["leaf0" + 1] AS "score1"
FROM (
  SELECT
    *,
    CASE WHEN CAST(("codes0" >> 3) & 3 AS UTINYINT) = 0 THEN 1 ELSE 2 END AS "leaf0"
  FROM "temp"."main"."dpforest_000001_0"
)
