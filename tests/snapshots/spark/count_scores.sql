-- Count the rows of each class by the bins of their scores; a score is a sum of leaf votes.
-- inputs: the coded rows, the votes of every node as constant arrays
-- outputs: one row per combination of bins and class that has rows
-- reads private rows: yes
SELECT
  `bin0`,
  `class`,
  COUNT(*) AS `rows`
FROM (
  SELECT
    CAST(`score0` > 0 AS INT) + CAST(`score0` > 5 AS INT) AS `bin0`,
    `class`
  FROM (
    SELECT
      get(CAST(split('10', ',') AS ARRAY<BIGINT>), `node0`) AS `score0`,
      `class`
    FROM (
      SELECT
        `word0`,
        `class`,
        0 AS `node0`
      FROM `view4`
    )
  )
)
GROUP BY `bin0`, `class`
