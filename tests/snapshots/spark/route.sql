-- Store the node that every row has reached: later splits start from there.
-- inputs: the coded rows; the nodes that they reach, by bit sets from constant arrays
-- outputs: the coded rows with new nodes
-- reads private rows: yes
SELECT
  * EXCEPT (`node0`),
  coalesce(get(CAST(split('3,4,5,6,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,7,8,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0', ',') AS ARRAY<INT>), get(CAST(split('0,1,-1', ',') AS ARRAY<INT>), `node0` - 0) * 65 + bit_count((get(CAST(split('1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,4,4,4,4,4,4,4,4,8,8,8,8,8,8,8,8,1,1,2,2,2,2,2,2,1,1,2,2,2,2,2,2,1,1,2,2,2,2,2,2,1,1,2,2,2,2,2,2', ',') AS ARRAY<BIGINT>), get(CAST(split('0,1,-1', ',') AS ARRAY<INT>), `node0` - 0) * 32 + CAST(shiftright(`word0`, 0) & 31 AS INT))) - 1)), `node0`) AS `node0`
FROM `view2`
