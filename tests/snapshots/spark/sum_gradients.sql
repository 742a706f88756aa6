-- Sum the gradients and hessians of the logistic loss by leaf, for some trees, as integers.
-- A class has the share p = e^score / (sum of e^score), rounded down to multiples of 1/65536.
-- inputs: the coded rows with their scores and the leaf of each tree
-- outputs: one row per tree and leaf that has rows
-- reads private rows: yes
WITH layer0 AS (
  SELECT
    *,
    array(get(CAST(split('1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0', ',') AS ARRAY<INT>), bit_count((get(CAST(split('1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 31 AS INT))) - 1))) AS `leaves`
  FROM (
    SELECT
      `word0`,
      `class`,
      `node0`,
      CAST(0 AS BIGINT) + get(CAST(split('-400000,-400000,-400000,-400000,-400000,-400000,-400000,-400000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 31 AS INT)) AS `score1`
    FROM `view4`
  )
)
, layer1 AS (
  SELECT
    *,
    floor(16777216e0 * exp((abs(`score1`)) / -1000000e0) + 5e-1) AS `smaller`,
    `score1` > 0 AS `likely`
  FROM layer0
)
, shares AS (
  SELECT
    floor(65536e0 * CASE WHEN `likely` THEN 16777216e0 ELSE `smaller` END / (16777216e0 + `smaller`)) AS `p1`,
    `class`,
    `leaves`
  FROM layer1
)
, gradients AS (
  SELECT
    CASE `class` WHEN 1 THEN 65536 ELSE 0 END - `p1` AS `g1`,
    (1 * `p1` * (65536 - `p1`)) div 65536 AS `h1`,
    posexplode(`leaves`) AS (`tree`, `node`)
  FROM shares
)
SELECT
  `tree`,
  `node`,
  SUM(`g1`) AS `g1`,
  SUM(`h1`) AS `h1`
FROM gradients
GROUP BY `tree`, `node`
