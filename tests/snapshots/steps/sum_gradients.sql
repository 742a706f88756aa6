-- Sum the gradients and hessians of the logistic loss by leaf, for some trees, as whole numbers.
-- A class has the share p = e^score / (sum of e^score), rounded down to multiples of 1/65536.
-- They are summed as DOUBLE, which is exact below 2^53, so for fewer than 2^37 rows.
-- inputs: the TEMP table of codes and scores; the trees' leaves, stored or as sums of codes
-- outputs: one row per tree and leaf that has rows
-- reads private rows: yes
WITH layer0 AS (
  SELECT
    *,
    "next0" AS "leaf0",
    "node_class0" % 2 AS "class"
  FROM "temp"."main"."dpforest_000003_1"
)
, layer1 AS (
  SELECT
    *,
    floor(16777216e0 * exp((abs("score1")) / -1000000e0) + 5e-1) AS "smaller",
    "score1" > 0 AS "likely"
  FROM layer0
)
, shares AS (
  SELECT
    *,
    floor(65536e0 * CASE WHEN "likely" THEN 16777216e0 ELSE "smaller" END / (16777216e0 + "smaller")) AS "p1"
  FROM layer1
)
, gradients AS (
  SELECT
    "leaf0",
    CASE "class" WHEN 1 THEN 65536e0 ELSE 0e0 END - "p1" AS "g1",
    floor(1e0 * "p1" * (65536e0 - "p1") / 65536e0) AS "h1"
  FROM shares
)
SELECT
  0 AS "tree",
  "leaf0" AS "node",
  CAST(SUM("g1") AS BIGINT) AS "g1",
  CAST(SUM("h1") AS BIGINT) AS "h1"
FROM gradients
GROUP BY "leaf0"
