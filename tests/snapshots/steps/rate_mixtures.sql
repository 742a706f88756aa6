-- Rate mixtures of models: each row gives each mixture up to 4096 points, half of them if
-- its class has the highest log-odds, half as its loss is small. Equal rows are rated once.
-- inputs: the TEMP table of codes, the models' trees as sums of codes, their votes in one list
-- outputs: one row with the sum of points of each mixture
-- reads private rows: yes
WITH alike AS (
  SELECT "codes0", "node_class0" % 2 AS "class", COUNT(*) AS "rows"
  FROM "temp"."main"."dpforest_000001_1"
  WHERE hash("codes0") % 2 = 0
  GROUP BY ALL
)
, placed AS (
  SELECT
    CASE WHEN ("codes0" & 24) = 0 THEN 1 ELSE 2 END AS "leaf0",
    "class",
    "rows"
  FROM alike
)
, scored AS (
  SELECT
    CAST(0 AS DOUBLE) AS "s0_0",
    CAST(v."votes"["leaf0" + 1] AS DOUBLE) AS "s0_1",
    CAST(0 AS DOUBLE) AS "s1_0",
    CAST(v."votes"["leaf0" + 4] AS DOUBLE) AS "s1_1",
    "class",
    "rows"
  FROM placed, (SELECT CAST('[0, -400000, 600000, 0, -400000, 600000]' AS BIGINT[]) AS "votes") AS v
)
, odds AS (
  SELECT
    (1 * "s0_0" + 1 * "s1_0") / 20000000e0 AS "z0_0",
    (1 * "s0_1" + 1 * "s1_1") / 20000000e0 AS "z0_1",
    (1 * "s0_0" + 2 * "s1_0") / 20000000e0 AS "z1_0",
    (1 * "s0_1" + 2 * "s1_1") / 20000000e0 AS "z1_1",
    "class",
    "rows"
  FROM scored
)
, lost AS (
  SELECT
    greatest("z0_0", "z0_1") AS "top0",
    CASE "class" WHEN 0 THEN "z0_0" WHEN 1 THEN "z0_1" END AS "own0",
    ln(exp("z0_0" - "top0") + exp("z0_1" - "top0")) + "top0" - "own0" AS "loss0",
    greatest("z1_0", "z1_1") AS "top1",
    CASE "class" WHEN 0 THEN "z1_0" WHEN 1 THEN "z1_1" END AS "own1",
    ln(exp("z1_0" - "top1") + exp("z1_1" - "top1")) + "top1" - "own1" AS "loss1",
    "rows"
  FROM odds
)
SELECT
  CAST(COALESCE(SUM("rows" * (
    CASE WHEN "own0" = "top0" THEN 2048 ELSE 0 END
    + CAST(floor(2048 * (1 - greatest(0, least(1, "loss0" / (4 * ln(2)))))) AS BIGINT)
  )), 0) AS BIGINT) AS "points0",
  CAST(COALESCE(SUM("rows" * (
    CASE WHEN "own1" = "top1" THEN 2048 ELSE 0 END
    + CAST(floor(2048 * (1 - greatest(0, least(1, "loss1" / (4 * ln(2)))))) AS BIGINT)
  )), 0) AS BIGINT) AS "points1"
FROM lost
