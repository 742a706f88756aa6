-- Rate mixtures of models: each row gives each mixture up to 4096 points, half of them if
-- its class has the highest log-odds, and up to half for a small loss. If many are equal, they are
-- rated together.
-- inputs: the TEMP table of codes, the models' votes and their mixtures (see
-- dpforest_duckdb/engine/coded_rows/mixed_votes.py)
-- outputs: the sum of points of each mixture; none if there are no rows
-- reads private rows: yes
WITH rated AS (
  SELECT "codes0", "node_class0" % 2 AS "class", COUNT(*) AS "rows"
  FROM "temp"."main"."dpforest_000003_1"
  WHERE hash("codes0") % 2 = 0
  GROUP BY ALL
)
, rooted AS (
  SELECT *
  FROM rated
)
, placed AS (
  SELECT
    CASE WHEN ("codes0" & 24) = 0 THEN 1 ELSE 2 END AS "place0",
    "class",
    "rows"
  FROM rooted
)
, packed AS (
  SELECT
    "votes"["place0" + 1] AS "packed0_0",
    "class",
    "rows"
  FROM placed, (SELECT CAST('[0, 103, 258]' AS BIGINT[]) AS "votes")
)
, mixed AS (
  SELECT
    CASE "mixture" WHEN 0 THEN 2 * ("packed0_0") WHEN 1 THEN 3 * ("packed0_0") END AS "mixed0",
    "class",
    "rows",
    "mixture"
  FROM packed, (VALUES (0), (1)) AS mixtures("mixture")
)
, odds AS (
  SELECT
    CAST("mixed0" & 31 AS DOUBLE) AS "z0",
    CAST(("mixed0" >> 5) AS DOUBLE) AS "z1",
    "class",
    "rows",
    "mixture"
  FROM mixed
)
, highest AS (
  SELECT
    *,
    greatest("z0", "z1") AS "highest0"
  FROM odds
)
, powers AS (
  SELECT
    floor(16777216e0 * exp(("highest0" - "z0") / -200e0) + 5e-1) AS "power0_0",
    floor(16777216e0 * exp(("highest0" - "z1") / -200e0) + 5e-1) AS "power0_1",
    "highest0" - CASE "class" WHEN 0 THEN "z0" WHEN 1 THEN "z1" END AS "below0",
    "rows",
    "mixture"
  FROM highest
)
, losses AS (
  SELECT
    *,
    floor(1000000e0 * ln(floor(("power0_0" + "power0_1") / 256e0) / 65536e0) + 5e-1) + 5000 * "below0" AS "loss0"
  FROM powers
)
SELECT "mixture", CAST(SUM("rows" * CAST(CASE WHEN "below0" = 0 THEN 2048 ELSE 0 END + floor(2048e0 * greatest(2772589 - "loss0", 0) / 2772589e0) AS BIGINT)) AS BIGINT) AS "points"
FROM losses
GROUP BY "mixture"
