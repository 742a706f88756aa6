-- Count the rows of each class in every combination of the labels that trees give them.
-- inputs: the coded rows with the leaf of each tree, the labels of the nodes as constant arrays
-- outputs: one row per combination and class that holds rows
-- reads private rows: yes
SELECT
  `label0`,
  `class`,
  COUNT(*) AS `rows`
FROM (
  SELECT
    get(CAST(split('0,0,1', ',') AS ARRAY<INT>), `leaf0`) AS `label0`,
    `class`
  FROM (
    SELECT
      *,
      get(CAST(split('1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0', ',') AS ARRAY<INT>), bit_count((get(CAST(split('1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 31 AS INT))) - 1)) AS `leaf0`
    FROM `view4`
  )
)
GROUP BY `label0`, `class`
