-- Count the rows of each class in every node.
-- inputs: the coded rows
-- outputs: one row per node and class that has rows
-- reads private rows: yes
SELECT `node`, `class`, COUNT(*) AS `rows`
FROM (
  SELECT
    `word0`,
    `class`,
    coalesce(get(CAST(split('9,10,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0', ',') AS ARRAY<INT>), get(CAST(split('-1,-1,0,-1,-1,-1,-1', ',') AS ARRAY<INT>), `node0` - 2) * 65 + bit_count((get(CAST(split('2,1,2,2,2,2,2,2,2,1,2,2,2,2,2,2,2,1,2,2,2,2,2,2,2,1,2,2,2,2,2,2', ',') AS ARRAY<BIGINT>), get(CAST(split('-1,-1,0,-1,-1,-1,-1', ',') AS ARRAY<INT>), `node0` - 2) * 32 + CAST(shiftright(`word0`, 0) & 31 AS INT))) - 1)), `node0`) AS `node`
  FROM `view3`
)
GROUP BY `node`, `class`
