-- Rate mixtures of models: each row gives each mixture up to 4096 points, half of them if
-- its class has the highest log-odds, and up to half for a small loss. Equal rows are rated once.
-- inputs: the TEMP table of codes, the nodes of the models' trees, their votes for several scores in
-- one integer (see dpforest_duckdb/engine/packed_votes.py), the weights of each mixture
-- outputs: the sum of points of each mixture; none if there are no rows
-- reads private rows: yes
WITH alike AS (
  SELECT "codes0", "node_class0" % 2 AS "class", COUNT(*) AS "rows"
  FROM "temp"."main"."dpforest_000003_1"
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
, packed AS (
  SELECT
    0 + (v."votes"["leaf0" + 1]) AS "packed0",
    "class",
    "rows"
  FROM placed, (SELECT CAST('[18, 0, 45]' AS BIGINT[]) AS "votes") AS v
)
, scored AS (
  SELECT
    CAST(0 AS DOUBLE) AS "s0_0",
    CAST((("packed0" >> 0) & 7) * 200000 + -400000 AS DOUBLE) AS "s0_1",
    CAST(0 AS DOUBLE) AS "s1_0",
    CAST((("packed0" >> 3) & 7) * 200000 + -400000 AS DOUBLE) AS "s1_1",
    "class",
    "rows"
  FROM packed
)
, odds AS (
  SELECT
    floor(("weight0" * "s0_0" + "weight1" * "s1_0") / 20e0) AS "z0_0",
    floor(("weight0" * "s0_1" + "weight1" * "s1_1") / 20e0) AS "z0_1",
    "class",
    "rows",
    "mixture"
  FROM scored, (
    VALUES
      (0, 1, 1),
      (1, 1, 2)
  ) AS mixtures("mixture", "weight0", "weight1")
)
, powers AS (
  SELECT
    floor(16777216e0 * exp((greatest("z0_0", "z0_1") - "z0_0") / -1000000e0) + 5e-1) AS "power0_0",
    floor(16777216e0 * exp((greatest("z0_0", "z0_1") - "z0_1") / -1000000e0) + 5e-1) AS "power0_1",
    greatest("z0_0", "z0_1") - CASE "class" WHEN 0 THEN "z0_0" WHEN 1 THEN "z0_1" END AS "below0",
    "rows",
    "mixture"
  FROM odds
)
, losses AS (
  SELECT
    *,
    floor(1000000e0 * ln(floor(("power0_0" + "power0_1") / 256e0) / 65536e0) + 5e-1) + "below0" AS "loss0"
  FROM powers
)
SELECT "mixture", CAST(SUM("rows" * CAST(CASE WHEN "below0" = 0 THEN 2048 ELSE 0 END + floor(2048e0 * greatest(2772589 - "loss0", 0) / 2772589e0) AS BIGINT)) AS BIGINT) AS "points"
FROM losses
GROUP BY "mixture"
