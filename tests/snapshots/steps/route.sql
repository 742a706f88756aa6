-- Move every row of a split node to the child that its code leads to; other rows stay.
-- inputs: the TEMP table of codes, the splits as constants (column, shift and mask of the code)
-- outputs: a new table of codes; node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE "temp"."main"."dpforest_000000_1" AS
WITH nodes AS (
  SELECT
    unnest(CAST('[0, 1]' AS BIGINT[])) AS "node",
    unnest(CAST('[0, 0]' AS BIGINT[])) AS "word",
    unnest(CAST('[3, 0]' AS BIGINT[])) AS "shift",
    unnest(CAST('[3, 7]' AS BIGINT[])) AS "mask",
    unnest(CAST('[0, 1]' AS BIGINT[])) AS "cut",
    unnest(CAST('[3, 7]' AS BIGINT[])) AS "first",
    unnest(CAST('[1, 2]' AS BIGINT[])) AS "kind"
),
splits AS (
  SELECT
    CAST("node" * 2 + "class" AS UTINYINT) AS "node_class",
    "word",
    CAST("shift" AS UBIGINT) AS "shift",
    CAST("mask" AS UBIGINT) AS "mask",
    CAST("cut" AS UBIGINT) AS "cut",
    CAST("first" * 2 + "class" AS UTINYINT) AS "first",
    "kind"
  FROM nodes, range(2) AS classes("class")
)
SELECT
  c."codes0",
  CAST(
    CASE
      WHEN "splits0"."node_class" IS NULL THEN c."node_class0"
      ELSE "splits0"."first" + 2 * CASE "splits0"."kind"
        WHEN 1 THEN CAST(((c."codes0" >> "splits0"."shift") & "splits0"."mask") AS UTINYINT)
        WHEN 2 THEN CAST(((c."codes0" >> "splits0"."shift") & "splits0"."mask") > "splits0"."cut" AS UTINYINT)
        ELSE CAST(((c."codes0" >> "splits0"."shift") & "splits0"."mask") <> "splits0"."cut" AS UTINYINT)
      END
    END AS UTINYINT
  ) AS "node_class0"
FROM "temp"."main"."dpforest_000000_0" AS c
LEFT JOIN splits AS "splits0" ON "splits0"."node_class" = c."node_class0"
