-- Find the bins of numbers with many edges by binary search: a CASE of so many takes long to plan.
-- The number of edges below a value is the sum of halving steps. The first ones are a short CASE, and
-- the fewer edges a column has, the fewer steps follow. An index beyond the last edge gives NULL, so
-- that step adds nothing.
-- inputs: the private table, the edges of some columns
-- outputs: its rows, with such a number for each of these columns
-- reads private rows: yes
WITH search16 AS (
  SELECT
    *,
    CAST('[0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240, 260, 280, 300, 320, 340, 360, 380, 400, 420, 440, 460, 480, 500, 520, 540, 560, 580, 600, 620, 640, 660, 680, 700, 720, 740, 760, 780, 800, 820, 840, 860, 880, 900, 920, 940, 960, 980, 1000, 1020, 1040, 1060, 1080, 1100, 1120, 1140, 1160, 1180, 1200, 1220, 1240, 1260, 1280, 1300, 1320, 1340, 1360, 1380, 1400, 1420, 1440, 1460, 1480, 1500, 1520, 1540, 1560, 1580, 1600, 1620, 1640, 1660, 1680, 1700, 1720, 1740, 1760, 1780, 1800, 1820, 1840, 1860, 1880, 1900, 1920, 1940, 1960, 1980]' AS BIGINT[]) AS "dpforest_000006_edges0",
    16 * (CASE WHEN "size" <= 940 THEN CASE WHEN "size" <= 300 THEN 0 ELSE CASE WHEN "size" <= 620 THEN 1 ELSE 2 END END ELSE CASE WHEN "size" <= 1580 THEN CASE WHEN "size" <= 1260 THEN 3 ELSE 4 END ELSE CASE WHEN "size" <= 1900 THEN 5 ELSE 6 END END END) AS "dpforest_000006_below0"
  FROM "memory"."main"."t"
)
, search8 AS (
  SELECT
    * EXCLUDE ("dpforest_000006_below0"),
    "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 8] THEN 8 ELSE 0 END AS "dpforest_000006_below0"
  FROM search16
)
, search4 AS (
  SELECT
    * EXCLUDE ("dpforest_000006_below0"),
    "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 4] THEN 4 ELSE 0 END AS "dpforest_000006_below0"
  FROM search8
)
, search2 AS (
  SELECT
    * EXCLUDE ("dpforest_000006_below0"),
    "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 2] THEN 2 ELSE 0 END AS "dpforest_000006_below0"
  FROM search4
)
, search1 AS (
  SELECT
    * EXCLUDE ("dpforest_000006_below0"),
    "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 1] THEN 1 ELSE 0 END AS "dpforest_000006_below0"
  FROM search2
)
SELECT * FROM search1
