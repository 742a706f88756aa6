-- Count equal coded rows: all of them, or about one in 2 of the different ones.
-- inputs: the coded rows
-- outputs: codes, class and a number of rows
-- reads private rows: yes
SELECT
  `word0`,
  `class`,
  COUNT(*) AS `rows`
FROM `view4`
WHERE pmod(xxhash64(`word0`), 2) = 0
GROUP BY `word0`, `class`
