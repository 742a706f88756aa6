-- Count how often a model is right, by class and by probability, or by its bin.
-- inputs: the scored rows of a table
-- outputs: one row per combination that occurs
-- reads private rows: yes
SELECT
  "class",
  "right",
  "value",
  COUNT(*) AS "rows"
FROM (
  SELECT
    *
  FROM (
    SELECT
      -- rows of no class are class -1
      COALESCE((system.main.list_position(['no', 'yes'], "s"."label" COLLATE "binary") - 1), -1) AS "class",
      COALESCE(CAST((system.main.list_position(['no', 'yes'], "s"."label" COLLATE "binary") - 1) = (system.main.list_position(['no', 'yes'], "s"."dpforest_prediction" COLLATE "binary") - 1) AS UTINYINT), 0) AS "right",
      COALESCE("s"."dpforest_p_yes", 0) AS "value"
    FROM (
      WITH
      "dpforest_votes" AS (
        SELECT
          -- votes for no
          CASE
            WHEN t."colour" COLLATE "binary" = 'red' THEN 700000
            ELSE 200000
          END AS "dpforest_votes_0",
          t.*
        FROM "memory"."main"."t" AS t
      )
      SELECT
        t.* EXCLUDE ("dpforest_votes_0"),
        CASE WHEN t."dpforest_votes_0" >= (1000000 - t."dpforest_votes_0") THEN 'no' ELSE 'yes' END AS "dpforest_prediction",
        CAST(t."dpforest_votes_0" AS DOUBLE) / 1000000 AS "dpforest_p_no",
        CAST((1000000 - t."dpforest_votes_0") AS DOUBLE) / 1000000 AS "dpforest_p_yes"
      FROM "dpforest_votes" AS t
    ) AS s
  ) AS labelled
) AS ordered
GROUP BY "class", "right", "value"
