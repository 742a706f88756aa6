-- Find the node of every row in trees whose splits have not moved the stored rows yet: the root, or
-- the node that the tests of the first splits give.
-- inputs: the TEMP table of codes, the splits as constants
-- outputs: codes and node_class = node * classes + class for some trees, for a statement that reads
-- them at once
-- reads private rows: yes
SELECT
  "codes0",
  CAST(CASE WHEN ("codes0" & 24) = 0 THEN 2 ELSE 4 END + CAST("node_class0" % 2 AS BIGINT) AS UTINYINT) AS "node_class0"
FROM "temp"."main"."dpforest_000002_0"
