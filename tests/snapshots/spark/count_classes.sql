-- Count the rows of each class, by node and joint code, for every block of attributes at once.
-- inputs: the coded rows with the place of each node among those that are counted, from 1; else 0
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- group = ((place - 1) * classes + class) * 32 + code; codes have one number for all blocks
-- The nodes are chosen inside explode: Spark would move a WHERE into the query of the nodes, and
-- repeat that query's expressions at each of its steps.
-- reads private rows: yes
SELECT `base` + `code` AS `group`, COUNT(*) AS `rows`
FROM (
  SELECT
    CAST((`node` - 1) * 2 + `class` AS BIGINT) * 32 AS `base`,
    explode(
      CASE
        WHEN `node` > 0 THEN array(CAST(shiftright(`word0`, 0) & 31 AS INT) + 0)
      END
    ) AS `code`
  FROM (
    SELECT
      `word0`,
      `class`,
      get(CAST(split('1,2,3', ',') AS ARRAY<INT>), `node0` - 0) AS `node`
    FROM `view2`
  )
)
GROUP BY `base` + `code`
