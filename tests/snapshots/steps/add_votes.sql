-- Add the votes of trees to the scores of every row (log-odds in millionths).
-- With one score, a tree's vote is a CASE over the cells of attributes, or a constant of its leaf if
-- an earlier statement stored the leaf. With several scores, the constants of leaves have the votes
-- for several classes in one number (see dpforest_duckdb/engine/coded_rows/packed_votes.py). The
-- leaves of large trees that are summed next are stored. They are found by a CASE, with look-ups for
-- the lower levels of a complete tree, or by bit sets in trees that split by few attributes (see
-- lower_levels.py and bit_sets.py in dpforest_duckdb/engine/coded_rows/).
-- inputs: the TEMP table of codes, the trees
-- outputs: codes and scores, as a new table or for a statement that reads them at once
-- reads private rows: yes
CREATE TEMP TABLE "temp"."main"."dpforest_000003_1" AS
WITH layer0 AS (
  SELECT * FROM "temp"."main"."dpforest_000002_0"
)
, layer1 AS (
  SELECT
    *,
    CAST(("codes0" >> 3) & 3 AS UTINYINT) AS "cell0"
  FROM layer0
)
, layer2 AS (
  SELECT
    *,
    CAST('[1, 2, 2, 2]' AS UBIGINT[])[CAST("cell0" AS INTEGER) + 1] AS "left0_0"
  FROM layer1
)
, layer3 AS (
  SELECT
    *,
    CASE WHEN "cell0" = 0 THEN -400000 ELSE 600000 END AS "vote0"
  FROM layer2
)
SELECT
  "codes0",
  "node_class0",
  CAST(0 AS BIGINT) + "vote0" AS "score1",
  CAST(CAST(bit_count("left0_0" - 1) AS INTEGER) + 1 AS UTINYINT) AS "next0"
FROM layer3
