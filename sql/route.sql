-- Move every row of a split node to the child that its code leads to; other rows stay.
-- inputs: the TEMP table of codes, the splits as constants; outputs: the same table, anew; a row's
-- seat is its node times the number of classes, plus its class
-- reads private rows: yes
CREATE TEMP TABLE {{ routed }} AS
WITH splits("node", "attribute", "cut", "first", "kind") AS (
  VALUES
{% for split in splits %}
    ({{ split.node }}, {{ split.attribute }}, {{ split.cell }}, {{ split.first }}, {{ split.kind }}){% if not loop.last %},{% endif %}

{% endfor %}
)
SELECT
{% for word in words %}
  c.{{ word }},
{% endfor %}
{% for seat in seats %}
  CAST(
    CASE
      WHEN {{ seat.splits }}."node" IS NULL THEN c.{{ seat.column }}
      ELSE ({{ seat.splits }}."first" + CASE {{ seat.splits }}."kind"
        WHEN {{ multiway }} THEN {{ code(seat.splits) }}
        WHEN {{ threshold }} THEN CAST({{ code(seat.splits) }} > {{ seat.splits }}."cut" AS UTINYINT)
        ELSE CAST({{ code(seat.splits) }} <> {{ seat.splits }}."cut" AS UTINYINT)
      END) * {{ classes }} + c.{{ seat.column }} % {{ classes }}
    END AS {{ type }}
  ) AS {{ seat.column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ codes }} AS c
{% for seat in seats %}
LEFT JOIN splits AS {{ seat.splits }} ON {{ seat.splits }}."node" = c.{{ seat.column }} // {{ classes }}
{% endfor %}
