-- Sum the products of pairs of positions over all rows; a position is a number for each cell.
-- inputs: the TEMP table of codes, the positions as constants
-- outputs: one row with a sum for each pair
-- reads private rows: yes
WITH placed AS (
  SELECT
    CAST(CAST(("codes0" >> 3) & 3 AS UTINYINT) AS INTEGER) + 0 AS "place0",
    CAST(CAST("codes0" & 7 AS UTINYINT) AS INTEGER) + 0 AS "place1"
  FROM "temp"."main"."dpforest_000002_0"
)
SELECT
  CAST(COALESCE(SUM("place0" * "place0"), 0) AS BIGINT) AS "sum0",
  CAST(COALESCE(SUM("place0" * "place1"), 0) AS BIGINT) AS "sum1",
  CAST(COALESCE(SUM("place1" * "place1"), 0) AS BIGINT) AS "sum2"
FROM placed
