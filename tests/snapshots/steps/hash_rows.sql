-- Sum up hashes of all rows, to see whether they are those that were coded before.
-- inputs: the private table
-- outputs: a number of rows and a sum of hashes, which go no further
-- reads private rows: yes
SELECT COUNT(*) AS "rows", SUM(CAST(hash("t"."colour" COLLATE "binary", "t"."size", "t"."who", "t"."label" COLLATE "binary") AS HUGEINT)) AS "hashes"
FROM "memory"."main"."t" AS t
