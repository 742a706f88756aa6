-- Count how often a model is right, by class and by probability, or by its bin.
-- inputs: the scored rows of a table
-- outputs: one row per combination that occurs
-- reads private rows: yes
SELECT
  `class`,
  `right`,
  `value`,
  COUNT(*) AS `rows`
FROM (
  SELECT
    *
  FROM (
    SELECT
      -- rows of no class are class -1
      COALESCE(CASE WHEN `s`.`label` = 'no' THEN 0 WHEN `s`.`label` = 'yes' THEN 1 END, -1) AS `class`,
      COALESCE(CAST(CASE WHEN `s`.`label` = 'no' THEN 0 WHEN `s`.`label` = 'yes' THEN 1 END = CASE WHEN `s`.`dpforest_prediction` = 'no' THEN 0 WHEN `s`.`dpforest_prediction` = 'yes' THEN 1 END AS INT), 0) AS `right`,
      COALESCE(`s`.`dpforest_p_yes`, 0) AS `value`
    FROM (
      WITH
      `dpforest_inputs` AS (
        SELECT
          -- colour as it is compared
          CAST(t.`colour` AS STRING) AS `dpforest_input_0`,
          t.`label`
        FROM `view1` AS t
      ),
      `dpforest_votes` AS (
        SELECT
          -- votes for no
          CASE
            WHEN t.`dpforest_input_0` = 'red' THEN 700000
            ELSE 200000
          END AS `dpforest_votes_0`,
          t.`label`
        FROM `dpforest_inputs` AS t
      )
      SELECT
        t.`label`,
        CASE WHEN t.`dpforest_votes_0` >= (1000000 - t.`dpforest_votes_0`) THEN 'no' ELSE 'yes' END AS `dpforest_prediction`,
        CAST(t.`dpforest_votes_0` AS DOUBLE) / 1000000 AS `dpforest_p_no`,
        CAST((1000000 - t.`dpforest_votes_0`) AS DOUBLE) / 1000000 AS `dpforest_p_yes`
      FROM `dpforest_votes` AS t
    ) AS s
  ) AS labelled
) AS bounded
GROUP BY `class`, `right`, `value`
