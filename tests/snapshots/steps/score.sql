-- Scored by a decision forest of dpforest-duckdb VERSION; reads the table it scores, nothing else.
-- model: model
-- predicts: "label" ("no", "yes")
-- recipe: auto, 1 tree, 3 nodes, 1 deep
-- guarantee: ε = 1, δ = 0, per row, add-remove neighbours
-- private: yes
-- A number outside its bounds counts as the nearest bound; an unknown category goes to an ELSE branch.
WITH
"dpforest_votes" AS (
  SELECT
    -- votes for no
    CASE
      WHEN CAST(t."colour" AS VARCHAR) COLLATE "binary" = 'red' THEN 700000
      ELSE 200000
    END AS "dpforest_votes_0",
    t.*
  FROM "t" AS t
)
SELECT
  t.* EXCLUDE ("dpforest_votes_0"),
  CASE WHEN t."dpforest_votes_0" >= (1000000 - t."dpforest_votes_0") THEN 'no' ELSE 'yes' END AS "prediction",
  CAST(t."dpforest_votes_0" AS DOUBLE) / 1000000 AS "p_no",
  CAST((1000000 - t."dpforest_votes_0") AS DOUBLE) / 1000000 AS "p_yes"
FROM "dpforest_votes" AS t
