-- Count the rows of each class in every pair of two attributes' values.
-- inputs: the TEMP table of codes; outputs: one row per pair of values and class that holds rows
-- reads private rows: yes
SELECT
  {{ first }} AS "first",
  {{ second }} AS "second",
  {{ node_class }} % {{ classes }} AS "class",
  COUNT(*) AS "rows"
FROM {{ codes }}
GROUP BY ALL
