-- The rows with the leaf of each of some trees that they fall into.
-- inputs: coded rows; the leaves, by bit sets from constant arrays
-- outputs: the rows and a leaf for each tree
-- reads private rows: yes
SELECT
  *,
  get(CAST(split('1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0', ',') AS ARRAY<INT>), bit_count((get(CAST(split('1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2', ',') AS ARRAY<BIGINT>), CAST(shiftright(`word0`, 0) & 31 AS INT))) - 1)) AS `leaf0`
FROM `view4`
