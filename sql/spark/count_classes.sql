-- Count the rows of each class, by node and cell, for every attribute of some trees at once.
-- inputs: the coded rows; a constant array that says which nodes from a first one on are counted
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- place = ((node - first) * classes + class) * cells + cell
-- The nodes are chosen inside explode: Spark would move a WHERE into the query of the nodes, and
-- repeat that query's expressions at each of its steps.
-- reads private rows: yes
SELECT `base` + `cell` AS `place`, COUNT(*) AS `rows`
FROM (
  SELECT
    CAST((`node` - {{ first }}) * {{ classes }} + `class` AS BIGINT) * {{ cells }} AS `base`,
    explode(
      CASE
        WHEN `node` >= {{ first }}{% if wanted %} AND get({{ wanted }}, `node` - {{ first }}) = 1{% endif %} THEN `cells`
      END
    ) AS `cell`
  FROM {{ nodes }}
)
GROUP BY `base` + `cell`
