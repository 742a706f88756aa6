-- Copy the rows whose pairs of values the next statement counts: the nodes are the bins of one
-- attribute. DuckDB knows the range of a stored node_class, so each GROUP BY takes half of the time.
-- inputs: the TEMP table of codes
-- outputs: a TEMP table of codes and node_class = bin * classes + class
-- reads private rows: yes
CREATE TEMP TABLE "temp"."main"."dpforest_000003_copy_0" AS
SELECT "codes0", CAST((CAST(CAST("codes0" & 7 AS UTINYINT) AS INTEGER) + 0) * 2 + "node_class0" % 2 AS UTINYINT) AS "bin"
FROM "temp"."main"."dpforest_000002_0"
