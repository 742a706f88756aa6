-- Encode the rows once into small integers; rows without a known class are left out.
-- inputs: a view of the rows of the private table
-- outputs: the codes of each row in the bits of a few columns, its class and its node, which is the number of its tree
-- reads private rows: yes
WITH coded AS (
  SELECT
    shiftleft(CAST(CASE WHEN CAST(`t`.`colour` AS STRING) = 'red' THEN 0 WHEN CAST(`t`.`colour` AS STRING) = 'blue' THEN 1 WHEN CAST(`t`.`colour` AS STRING) IS NULL THEN 3 ELSE 2 END AS BIGINT), 3)
      | shiftleft(CAST(CASE WHEN `t`.`size` IS NULL THEN 4 ELSE CAST(greatest(least(`t`.`size`, 3), 0) AS BIGINT) - (0) END AS BIGINT), 0) AS `word0`,
    `t`.`who` AS `unit`,
    CAST(CASE WHEN `t`.`label` = 'no' THEN 0 WHEN `t`.`label` = 'yes' THEN 1 END AS INT) AS `class`
  FROM `view1` AS t
)
, bounded AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY `unit` ORDER BY xxhash64(:salt, `unit`, `word0`, `class`), `word0`, `class`
    ) AS `position`
  FROM coded
  WHERE `class` IS NOT NULL AND `unit` IS NOT NULL
)
, kept AS (
  SELECT * FROM bounded
  WHERE `position` <= 2
)
SELECT
  `word0`,
  `class`,
  CAST(pmod(xxhash64(:salt, `unit`), 3) AS INT) AS `node0`
FROM kept
