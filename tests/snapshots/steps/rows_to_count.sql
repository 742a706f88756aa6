-- Copy the rows that the next statement counts. DuckDB knows the range of a stored node_class, so each
-- GROUP BY takes half of the time or less.
-- For pairs of values, nodes are the bins of one attribute.
-- inputs: the TEMP table of codes; the node_classes to count, or the first of them
-- outputs: a TEMP table of codes and node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE "temp"."main"."dpforest_000003_copy_0" AS
SELECT "codes0", CAST((CAST(CAST("codes0" & 7 AS UTINYINT) AS INTEGER) + 0) * 2 + "node_class0" % 2 AS UTINYINT) AS "node_class"
FROM "temp"."main"."dpforest_000002_0" AS c
