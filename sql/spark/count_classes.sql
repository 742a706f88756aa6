-- Count the rows of each class, by node and cell, for every attribute of some trees at once.
-- inputs: the coded rows; a constant array that says which nodes from a first one on are counted
-- outputs: one row per group that has rows; Python fills the empty cells before noise is added
-- place = ((node - first) * classes + class) * cells + cell
-- reads private rows: yes
SELECT `base` + `cell` AS `place`, COUNT(*) AS `rows`
FROM (
  SELECT
    CAST((`node` - {{ first }}) * {{ classes }} + `class` AS BIGINT) * {{ cells }} AS `base`,
    explode(`cells`) AS `cell`
  FROM {{ nodes }}
  WHERE `node` >= {{ first }}
{% if wanted %}
    AND get({{ wanted }}, `node` - {{ first }}) = 1
{% endif %}
)
GROUP BY `base` + `cell`
