-- The coded rows with the node of each tree that they have reached.
-- inputs: the coded rows; the nodes, by bit sets from constant arrays
-- outputs: codes, class and a node for each tree
-- reads private rows: yes
SELECT
  `word0`,
  `class`,
  0 AS `node0`
FROM `view4`
