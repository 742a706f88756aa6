-- Find the bins of numbers with many edges by binary search: a CASE of so many takes long to plan.
-- The number of edges below a value is the sum of halving steps. An index beyond the last edge gives
-- NULL, so that step adds nothing.
-- inputs: the private table, the edges of some columns
-- outputs: its rows, with such a number for each of these columns
-- reads private rows: yes
SELECT
  * EXCLUDE ("dpforest_000006_below0"),
  "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 1] THEN 1 ELSE 0 END AS "dpforest_000006_below0"
FROM (
SELECT
  * EXCLUDE ("dpforest_000006_below0"),
  "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 2] THEN 2 ELSE 0 END AS "dpforest_000006_below0"
FROM (
SELECT
  * EXCLUDE ("dpforest_000006_below0"),
  "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 4] THEN 4 ELSE 0 END AS "dpforest_000006_below0"
FROM (
SELECT
  * EXCLUDE ("dpforest_000006_below0"),
  "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 8] THEN 8 ELSE 0 END AS "dpforest_000006_below0"
FROM (
SELECT
  * EXCLUDE ("dpforest_000006_below0"),
  "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 16] THEN 16 ELSE 0 END AS "dpforest_000006_below0"
FROM (
SELECT
  * EXCLUDE ("dpforest_000006_below0"),
  "dpforest_000006_below0" + CASE WHEN "size" > "dpforest_000006_edges0"["dpforest_000006_below0" + 32] THEN 32 ELSE 0 END AS "dpforest_000006_below0"
FROM (
SELECT
  *,
  CASE WHEN "size" > "dpforest_000006_edges0"[64] THEN 64 ELSE 0 END AS "dpforest_000006_below0"
FROM (
SELECT
  *,
  CAST('[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126, 128, 130, 132, 134, 136, 138, 140, 142, 144, 146, 148, 150, 152, 154, 156, 158, 160, 162, 164, 166, 168, 170, 172, 174, 176, 178, 180, 182, 184, 186, 188, 190, 192, 194, 196, 198]' AS BIGINT[]) AS "dpforest_000006_edges0"
FROM "memory"."main"."t"
)
)
)
)
)
)
)
