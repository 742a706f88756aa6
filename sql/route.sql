-- Move every row of a split node to the child that its code leads to; other rows stay.
-- inputs: the TEMP table of codes, the splits as constants (column, shift and mask of the code)
-- outputs: a new table of codes; node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE {{ routed }} AS
WITH nodes AS (
  SELECT
    {{ splits.node }} AS "node",
    {{ splits.word }} AS "word",
    {{ splits.shift }} AS "shift",
    {{ splits.mask }} AS "mask",
    {{ splits.cell }} AS "cut",
    {{ splits.first }} AS "first",
    {{ splits.kind }} AS "kind"
),
splits AS (
  SELECT
    CAST("node" * {{ classes }} + "class" AS {{ old_type }}) AS "node_class",
    "word",
    CAST("shift" AS UBIGINT) AS "shift",
    CAST("mask" AS UBIGINT) AS "mask",
    CAST("cut" AS UBIGINT) AS "cut",
    CAST("first" * {{ classes }} + "class" AS {{ type }}) AS "first",
    "kind"
  FROM nodes, range({{ classes }}) AS classes("class")
)
SELECT
{% for column in kept %}
  c.{{ column }},
{% endfor %}
{% for node_class in node_classes %}
  CAST(
    CASE
      WHEN {{ node_class.splits }}."node_class" IS NULL THEN c.{{ node_class.column }}
      ELSE {{ node_class.splits }}."first" + {{ classes }} * CASE {{ node_class.splits }}."kind"
        WHEN {{ multiway }} THEN CAST({{ code(node_class.splits) }} AS {{ type }})
        WHEN {{ threshold }} THEN CAST({{ code(node_class.splits) }} > {{ node_class.splits }}."cut" AS {{ type }})
        ELSE CAST({{ code(node_class.splits) }} <> {{ node_class.splits }}."cut" AS {{ type }})
      END
    END AS {{ type }}
  ) AS {{ node_class.column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ codes }} AS c
{% for node_class in node_classes %}
LEFT JOIN splits AS {{ node_class.splits }} ON {{ node_class.splits }}."node_class" = c.{{ node_class.column }}
{% endfor %}
