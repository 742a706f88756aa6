-- Encode the rows once into small integers; rows without a known class are left out.
-- inputs: a view of the rows of the private table
-- outputs: the codes of each row in the bits of a few columns, its class and its node, which is the number of its tree
-- reads private rows: yes
WITH coded AS (
  SELECT
{% for word in words %}
    {{ word.value }} AS {{ word.name }},
{% endfor %}
{% if unit %}
    {{ unit.canonical }} AS `unit`,
{% else %}
    {{ row_hash }} AS `row`,
{% endif %}
    CAST({{ class }} AS INT) AS `class`
  FROM {{ source }} AS t
)
{% if unit %}
, bounded AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY `unit` ORDER BY xxhash64(:salt, `unit`, {% for word in words %}{{ word.name }}, {% endfor %}`class`), {% for word in words %}{{ word.name }}, {% endfor %}`class`
    ) AS `position`
  FROM coded
  WHERE `class` IS NOT NULL AND `unit` IS NOT NULL
)
{% endif %}
, kept AS (
{% if unit %}
  SELECT * FROM bounded
  WHERE `position` <= {{ unit.rows }}
{% else %}
  SELECT * FROM coded
  WHERE `class` IS NOT NULL
{% endif %}
)
{% if labelled %}
, labelled AS (
  -- what released trees say of a row, by its cells
  SELECT *, {% for wrong in wrongs %}CAST({{ wrong }} AS INT){% if not loop.last %} + {% endif %}{% endfor %} AS `wrong`
  FROM {{ labelled | indent(2) }}
)
{% endif %}
{% if bootstrap %}
{% if labelled %}
, weighed AS (
  -- a row counts once for each tree that is wrong about it; all rows once if no tree is wrong
  SELECT *, CASE WHEN MAX(`wrong`) OVER () = 0 THEN 1 ELSE `wrong` END AS `times`
  FROM labelled
)
{% endif %}
, numbered AS (
  SELECT *, row_number() OVER (ORDER BY xxhash64(:salt, `row`), {% for word in words %}{{ word.name }}, {% endfor %}`class`) - 1 AS `number`
{% if labelled %}
  FROM (SELECT *, explode(array_repeat(0, `times`)) FROM weighed)
{% else %}
  FROM kept
{% endif %}
)
, drawn AS (
  -- for each tree as many draws as there are rows, with replacement
  SELECT n.*, d.`part`
  FROM (
    SELECT `part`, pmod(xxhash64(:salt, `part`, `draw`), (SELECT COUNT(*) FROM numbered)) AS `number`
    FROM (
      SELECT explode(sequence(0, {{ parts - 1 }})) AS `part`, `draw`
      FROM (SELECT row_number() OVER (ORDER BY {% for word in words %}{{ word.name }}, {% endfor %}`class`) AS `draw` FROM kept)
    )
  ) AS d
  JOIN numbered AS n ON n.`number` = d.`number`
)
{% endif %}
SELECT
{% for word in words %}
  {{ word.name }},
{% endfor %}
  `class`,
{% if parts == 1 %}
  0 AS `node0`
{% elif bootstrap %}
  `part` AS `node0`
{% elif unit %}
  CAST(pmod(xxhash64(:salt, {{ unit.key }}), {{ parts }}) AS INT) AS `node0`
{% else %}
  CAST(pmod(xxhash64(:salt, `row`), {{ parts }}) AS INT) AS `node0`
{% endif %}
{% if bootstrap %}
FROM drawn
{% elif labelled %}
FROM (
  SELECT *, explode(array_repeat(0, CASE WHEN 2 * `wrong` >= {{ wrongs | length }} THEN {{ misclassified_weight }} ELSE 1 END))
  FROM labelled
)
{% else %}
FROM kept
{% endif %}
