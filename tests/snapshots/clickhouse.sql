-- Scored by a decision forest of dpforest-duckdb ; reads the table it scores, nothing else.
-- model: risk
-- predicts: "ill" ("no", "yes")
-- recipe: by hand, 1 tree, 11 nodes, 4 deep
-- guarantee: ε = 1, δ = 0, per row, add-remove neighbours
-- private: yes
-- A number outside its bounds counts as the nearest bound; an unknown category goes to an ELSE branch.
CREATE TABLE `risk_scored` ENGINE = MergeTree ORDER BY tuple() AS
WITH
`dpforest_inputs` AS (
  SELECT
    -- city as it is compared
    toString(t.`city`) AS `dpforest_input_0`,
    t.`id`,
    t.`age`,
    t.`weight`,
    t.`since`,
    t.`city`
  FROM `visits` AS t
),
`dpforest_leaves` AS (
  SELECT
    -- leaf of tree 0
    CASE
      WHEN t.`age` IS NULL THEN 2
      WHEN t.`age` <= 17 THEN CASE
        WHEN t.`dpforest_input_0` = 'Bern' THEN CASE
          WHEN t.`since` <= toDate32('2020-01-01') THEN CASE
            WHEN t.`weight` > 49.5e0 AND NOT (t.`weight` IS NULL OR isNaN(t.`weight`)) THEN 5
            ELSE 6
          END
          ELSE 4
        END
        ELSE 3
      END
      WHEN t.`age` <= 64 THEN 0
      ELSE 1
    END AS `dpforest_leaf_0`,
    t.`id`,
    t.`age`,
    t.`weight`,
    t.`since`,
    t.`city`
  FROM `dpforest_inputs` AS t
),
`dpforest_votes` AS (
  SELECT
    -- votes for no
    toInt64(CASE WHEN t.`dpforest_leaf_0` < 3 THEN CASE WHEN t.`dpforest_leaf_0` < 1 THEN 5 ELSE CASE WHEN t.`dpforest_leaf_0` < 2 THEN 7 ELSE 9 END END ELSE CASE WHEN t.`dpforest_leaf_0` < 5 THEN CASE WHEN t.`dpforest_leaf_0` < 4 THEN 13 ELSE 17 END ELSE CASE WHEN t.`dpforest_leaf_0` < 6 THEN 19 ELSE 21 END END END) AS `dpforest_votes_0`,
    -- votes for yes
    toInt64(CASE WHEN t.`dpforest_leaf_0` < 3 THEN CASE WHEN t.`dpforest_leaf_0` < 1 THEN 6 ELSE CASE WHEN t.`dpforest_leaf_0` < 2 THEN 8 ELSE 10 END END ELSE CASE WHEN t.`dpforest_leaf_0` < 5 THEN CASE WHEN t.`dpforest_leaf_0` < 4 THEN 14 ELSE 18 END ELSE CASE WHEN t.`dpforest_leaf_0` < 6 THEN 20 ELSE 22 END END END) AS `dpforest_votes_1`,
    t.`id`,
    t.`age`,
    t.`weight`,
    t.`since`,
    t.`city`
  FROM `dpforest_leaves` AS t
)
SELECT
  t.`id`,
  t.`age`,
  t.`weight`,
  t.`since`,
  t.`city`,
  CASE WHEN t.`dpforest_votes_0` >= t.`dpforest_votes_1` THEN 'no' ELSE 'yes' END AS `prediction`,
  1.0 - 1.0 / (1.0 + exp(toFloat64((t.`dpforest_votes_0` - t.`dpforest_votes_1`)) / 1000000)) AS `p_no`,
  1.0 / (1.0 + exp(toFloat64((t.`dpforest_votes_0` - t.`dpforest_votes_1`)) / 1000000)) AS `p_yes`
FROM `dpforest_votes` AS t;
