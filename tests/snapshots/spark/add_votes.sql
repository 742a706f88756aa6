-- Add the votes of trees to the scores of every row (log-odds in millionths).
-- inputs: the coded rows; the leaf of each tree and its votes, from constant arrays
-- outputs: the coded rows and their scores
-- reads private rows: yes
SELECT
  `word0`,
  `class`,
  `node0`,
  CAST(0 AS BIGINT) + get(CAST(split('-400000,-400000,-400000,-400000,-400000,-400000,-400000,-400000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000,600000', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 31 AS INT)) AS `score1`
FROM `view4`
