-- Move every row of a split node to the child that its code leads to; other rows stay.
-- inputs: the TEMP table of codes, the splits as constants (see
-- dpforest_duckdb/engine/coded_rows/routing.py)
-- outputs: a new table of codes; node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE "temp"."main"."dpforest_000001_1" AS
SELECT
  c."codes0",
  CAST(CASE WHEN c."node_class0" BETWEEN 0 AND 3 THEN CAST('[6, 7, 14, 15]' AS BIGINT[])[CAST(c."node_class0" AS BIGINT) - -1] + 2 * CAST((((c."codes0" & CAST('[24, 24, 7, 7]' AS UBIGINT[])[CAST(c."node_class0" AS BIGINT) - -1]) + CAST('[0, 0, 6, 6]' AS UBIGINT[])[CAST(c."node_class0" AS BIGINT) - -1]) >> CAST(3 AS UBIGINT)) AS BIGINT) ELSE c."node_class0" END AS UTINYINT) AS "node_class0"
FROM "temp"."main"."dpforest_000000_0" AS c
