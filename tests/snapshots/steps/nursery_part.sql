-- Store the part of the Nursery table to train on, or the part to test on, with ENUM columns.
-- inputs: the Nursery table
-- outputs: a table of about three quarters of its rows, or of the others
-- reads private rows: no (the rows are published)
CREATE TABLE "nursery" AS
SELECT
  CAST("parents" AS ENUM ('usual', 'pretentious', 'great_pret')) AS "parents",
  CAST("has_nurs" AS ENUM ('proper', 'less_proper', 'improper', 'critical', 'very_crit')) AS "has_nurs",
  CAST("form" AS ENUM ('complete', 'completed', 'incomplete', 'foster')) AS "form",
  CAST("children" AS ENUM ('1', '2', '3', 'more')) AS "children",
  CAST("housing" AS ENUM ('convenient', 'less_conv', 'critical')) AS "housing",
  CAST("finance" AS ENUM ('convenient', 'inconv')) AS "finance",
  CAST("social" AS ENUM ('nonprob', 'slightly_prob', 'problematic')) AS "social",
  CAST("health" AS ENUM ('recommended', 'priority', 'not_recom')) AS "health",
  CAST("class" AS ENUM ('not_recom', 'recommend', 'very_recom', 'priority', 'spec_prior')) AS "class"
FROM (
  -- NURSERY(EMPLOY(parents, has_nurs),
  --         STRUCT_FINAN(STRUCTURE(form, children), housing, finance),
  --         SOC_HEALTH(social, health))
  -- A concept is a number, 0 being the best level. The levels were read off the published rows: two
  -- combinations share a level if they always have the same class. Each table below is a grid: its
  -- columns are named after the values of one attribute, and UNPIVOT turns every cell into a row.
  WITH employ AS (
    SELECT parents, has_nurs, employ
    FROM (
      VALUES
        ('usual',       0, 1, 1, 2, 3),
        ('pretentious', 1, 1, 2, 3, 3),
        ('great_pret',  2, 2, 3, 3, 3)
    ) AS grid(parents, proper, less_proper, improper, critical, very_crit)
    UNPIVOT (employ FOR has_nurs IN (proper, less_proper, improper, critical, very_crit))
  ),
  structure AS (
    SELECT form, children, structure
    FROM (
      VALUES
        ('complete',   0, 1, 2, 2),
        ('completed',  1, 1, 2, 2),
        ('incomplete', 1, 2, 2, 2),
        ('foster',     2, 2, 2, 2)
    ) AS grid(form, "1", "2", "3", "more")
    UNPIVOT (structure FOR children IN ("1", "2", "3", "more"))
  ),
  struct_finan AS (
    SELECT structure, housing, finance, struct_finan
    FROM (
      VALUES
        (0, 'convenient', 0, 1),
        (0, 'less_conv',  1, 1),
        (0, 'critical',   1, 1),
        (1, 'convenient', 1, 1),
        (1, 'less_conv',  1, 1),
        (1, 'critical',   2, 2),
        (2, 'convenient', 1, 2),
        (2, 'less_conv',  2, 2),
        (2, 'critical',   2, 2)
    ) AS grid(structure, housing, convenient, inconv)
    UNPIVOT (struct_finan FOR finance IN (convenient, inconv))
  ),
  soc_health AS (
    SELECT social, health, soc_health
    FROM (
      VALUES
        ('nonprob',       0, 1, 2),
        ('slightly_prob', 0, 1, 2),
        ('problematic',   1, 1, 2)
    ) AS grid(social, recommended, priority, not_recom)
    UNPIVOT (soc_health FOR health IN (recommended, priority, not_recom))
  )
  SELECT
    parents, has_nurs, form, children, housing, finance, social, health,
    CASE
      WHEN soc_health = 2 THEN 'not_recom'
      WHEN employ + struct_finan + soc_health = 0 THEN 'recommend'
      WHEN employ <= 1 AND struct_finan <= 1 AND soc_health = 0 THEN 'very_recom'
      WHEN employ + struct_finan + soc_health >= 5 THEN 'spec_prior'
      ELSE 'priority'
    END AS class
  FROM employ
  CROSS JOIN structure
  JOIN struct_finan USING (structure)
  CROSS JOIN soc_health
) AS n
-- the attributes are all different, and md5 is the same everywhere
WHERE md5_number_lower(concat_ws('|', "parents", "has_nurs", "form", "children", "housing", "finance", "social", "health")) % 4 <> 0
