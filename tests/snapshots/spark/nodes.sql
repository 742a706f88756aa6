-- The coded rows with one node each: a row of several trees becomes one row for each of them.
-- inputs: the coded rows
-- outputs: codes, class and node
-- reads private rows: yes
SELECT
  `word0`,
  `class`,
  get(CAST(split('1,2,3', ',') AS ARRAY<INT>), `node0` - 0) AS `node`
FROM `view2`
