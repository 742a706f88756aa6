-- Encode the rows once into small integers; rows without a known class are left out.
-- inputs: the private table
-- outputs: a TEMP table of codes and node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE "temp"."main"."dpforest_000000_0" AS
WITH coded AS (
  SELECT
    (CAST(CASE WHEN "t"."colour" IS NULL THEN 3 ELSE coalesce((system.main.list_position(['red', 'blue'], "t"."colour" COLLATE "binary") - 1), 2) END AS UTINYINT) << 3)
      | CAST(CASE WHEN "t"."size" IS NULL THEN 4 ELSE CAST(system.main.greatest(system.main.least("t"."size", 3), 0) AS BIGINT) - (0) END AS UTINYINT) AS "codes0",
    "t"."who" AS "unit",
    CAST((system.main.list_position(['no', 'yes'], "t"."label" COLLATE "binary") - 1) AS UTINYINT) AS "class"
  FROM "memory"."main"."t" AS t
)
, ordered AS (
  -- one order of all rows: DuckDB writes it to disk as needed, even if a unit has most of the rows.
  -- The hash is of the unit too: units with the same rows must not all use the same of them.
  -- Ties in the hash are broken by class and codes, so rows that still tie are identical. Without
  -- this, the order of two rows of a unit with the same hash, and so which of them is used, could
  -- depend on the rows of other units
  SELECT
    *,
    lag("unit", 2) OVER (
      ORDER BY "unit", hash(CAST($salt AS UBIGINT), "unit", "codes0", "class"),
        "class", "codes0"
    ) AS "before"
  FROM coded
  WHERE "class" IS NOT NULL AND "unit" IS NOT NULL
)
, kept AS (
  -- a row is left out if as many rows of its unit come before it as are used
  SELECT
    *,
    -- one tree per unit: equal units share a key even where the column compares without case
    CAST(hash(min("unit") OVER (PARTITION BY "unit"), CAST($salt AS UBIGINT))
      % 3 AS UINTEGER) AS "part"
  FROM ordered
  WHERE "before" IS DISTINCT FROM "unit"
)
SELECT
  "codes0",
  CAST("part" * 2 + "class" AS UTINYINT) AS "node_class0"
FROM kept
-- rows of a tree side by side: their groups fit into the processor's caches
ORDER BY "node_class0"
