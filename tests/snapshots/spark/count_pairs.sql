-- Count the rows of each class in every pair of values of one attribute and of each attribute.
-- inputs: the coded rows
-- outputs: one row per pair of cells and class that holds rows
-- reads private rows: yes
SELECT `first`, `second`, `class`, COUNT(*) AS `rows`
FROM (
  SELECT
    get(CAST(split('0,1,2,3,4', ',') AS ARRAY<INT>), CAST(shiftright(`word0`, 0) & 7 AS INT)) AS `first`,
    explode(array(CAST(shiftright(`word0`, 3) & 3 AS INT) + 0, CAST(shiftright(`word0`, 0) & 7 AS INT) + 4)) AS `second`,
    `class`
  FROM `view4`
)
GROUP BY `first`, `second`, `class`
