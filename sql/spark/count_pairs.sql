-- Count the rows of each class in every pair of values of one attribute and of each attribute.
-- inputs: the coded rows
-- outputs: one row per pair of cells and class that holds rows
-- reads private rows: yes
SELECT `first`, `second`, `class`, COUNT(*) AS `rows`
FROM (
  SELECT
    {{ first }} AS `first`,
    explode(array({{ others | join(", ") }})) AS `second`,
    `class`
  FROM {{ codes }}
)
GROUP BY `first`, `second`, `class`
