-- Move every row of a split node to the child that its code leads to; other rows stay.
-- inputs: the TEMP table of codes, the splits as constants (where the code lies: column, shift and
-- mask); outputs: the same table, anew; a row's seat is its node times the number of classes, plus
-- its class
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
    CAST("node" * {{ classes }} + "class" AS {{ old_type }}) AS "seat",
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
{% for seat in seats %}
  CAST(
    CASE
      WHEN {{ seat.splits }}."seat" IS NULL THEN c.{{ seat.column }}
      ELSE {{ seat.splits }}."first" + {{ classes }} * CASE {{ seat.splits }}."kind"
        WHEN {{ multiway }} THEN CAST({{ code(seat.splits) }} AS {{ type }})
        WHEN {{ threshold }} THEN CAST({{ code(seat.splits) }} > {{ seat.splits }}."cut" AS {{ type }})
        ELSE CAST({{ code(seat.splits) }} <> {{ seat.splits }}."cut" AS {{ type }})
      END
    END AS {{ type }}
  ) AS {{ seat.column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ codes }} AS c
{% for seat in seats %}
LEFT JOIN splits AS {{ seat.splits }} ON {{ seat.splits }}."seat" = c.{{ seat.column }}
{% endfor %}
