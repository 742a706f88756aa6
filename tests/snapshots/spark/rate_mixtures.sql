-- Rate mixtures of models: each row gives each mixture up to 4096 points, half of them if
-- its class has the highest log-odds, half as its loss is small. Equal rows are rated once.
-- inputs: distinct coded rows with the leaf of each tree, and the votes of the nodes
-- outputs: one row with the sum of points of each mixture
-- reads private rows: yes
WITH scored AS (
  SELECT
    CAST(0 AS BIGINT) AS `s0_0`,
    get(CAST(split('0,-400000,600000', ',') AS ARRAY<BIGINT>), `leaf0`) AS `s0_1`,
    CAST(0 AS BIGINT) AS `s1_0`,
    get(CAST(split('0,-400000,600000', ',') AS ARRAY<BIGINT>), `leaf1`) AS `s1_1`,
    `class`,
    `rows`
  FROM (
    SELECT
      *,
      get(CAST(split('1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0', ',') AS ARRAY<INT>), bit_count((get(CAST(split('1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 31 AS INT))) - 1)) AS `leaf0`,
      get(CAST(split('1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0', ',') AS ARRAY<INT>), bit_count((get(CAST(split('1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 31 AS INT))) - 1)) AS `leaf1`
    FROM (
      SELECT
        `word0`,
        `class`,
        COUNT(*) AS `rows`
      FROM `view4`
      WHERE pmod(xxhash64(`word0`), 2) = 0
      GROUP BY `word0`, `class`
    )
  )
)
, odds AS (
  SELECT
    (1 * `s0_0` + 1 * `s1_0`) / 20e0 AS `z0_0`,
    (1 * `s0_1` + 1 * `s1_1`) / 20e0 AS `z0_1`,
    (1 * `s0_0` + 2 * `s1_0`) / 20e0 AS `z1_0`,
    (1 * `s0_1` + 2 * `s1_1`) / 20e0 AS `z1_1`,
    `class`,
    `rows`
  FROM scored
)
, highest AS (
  SELECT
    *,
    greatest(`z0_0`, `z0_1`) AS `highest0`,
    greatest(`z1_0`, `z1_1`) AS `highest1`
  FROM odds
)
, powers AS (
  SELECT
    floor(16777216e0 * exp((`highest0` - `z0_0`) / -1000000e0) + 5e-1) AS `power0_0`,
    floor(16777216e0 * exp((`highest0` - `z0_1`) / -1000000e0) + 5e-1) AS `power0_1`,
    `highest0` - CASE `class` WHEN 0 THEN `z0_0` WHEN 1 THEN `z0_1` END AS `below0`,
    floor(16777216e0 * exp((`highest1` - `z1_0`) / -1000000e0) + 5e-1) AS `power1_0`,
    floor(16777216e0 * exp((`highest1` - `z1_1`) / -1000000e0) + 5e-1) AS `power1_1`,
    `highest1` - CASE `class` WHEN 0 THEN `z1_0` WHEN 1 THEN `z1_1` END AS `below1`,
    `rows`
  FROM highest
)
, losses AS (
  SELECT
    *,
    floor(1000000e0 * ln(floor((`power0_0` + `power0_1`) / 256e0) / 65536e0) + 5e-1) + 1 * `below0` AS `loss0`,
    floor(1000000e0 * ln(floor((`power1_0` + `power1_1`) / 256e0) / 65536e0) + 5e-1) + 1 * `below1` AS `loss1`
  FROM powers
)
SELECT
  CAST(COALESCE(SUM(`rows` * CAST(CASE WHEN `below0` = 0 THEN 2048 ELSE 0 END + floor(2048e0 * greatest(2772589 - `loss0`, 0) / 2772589e0) AS BIGINT)), 0) AS BIGINT) AS `points0`,
  CAST(COALESCE(SUM(`rows` * CAST(CASE WHEN `below1` = 0 THEN 2048 ELSE 0 END + floor(2048e0 * greatest(2772589 - `loss1`, 0) / 2772589e0) AS BIGINT)), 0) AS BIGINT) AS `points1`
FROM losses
