-- Sum the products of pairs of positions over all rows; a position is a number for each cell.
-- inputs: the coded rows, the positions as constant arrays
-- outputs: one row with the sums
-- reads private rows: yes
SELECT
  COALESCE(SUM(`place0` * `place0`), 0) AS `sum0`,
  COALESCE(SUM(`place0` * `place1`), 0) AS `sum1`,
  COALESCE(SUM(`place1` * `place1`), 0) AS `sum2`
FROM (
  SELECT
    get(CAST(split('0,1,2,3', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 3) & 3 AS INT)) AS `place0`,
    get(CAST(split('0,1,2,3,4', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 7 AS INT)) AS `place1`
  FROM `view4`
)
