-- Read the columns that a run uses, and a hash of the whole row.
-- inputs: a view of the private table
-- outputs: its rows
-- reads private rows: yes
SELECT
  `colour`,
  `size`,
  `who`,
  `label`,
  xxhash64(`colour`, `size`, `who`, `label`) AS `dpforest_row`
FROM `view0`
