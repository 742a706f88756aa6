-- Move every row of a split node to the child that its code leads to; other rows stay.
-- inputs: the TEMP table of codes, the splits as constants; outputs: the same table, anew
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
{% for node in nodes %}
  CAST(
    CASE
      WHEN {{ node.splits }}."node" IS NULL THEN c.{{ node.column }}
      ELSE {{ node.splits }}."first" + CASE {{ node.splits }}."kind"
        WHEN {{ multiway }} THEN {{ code(node.splits) }}
        WHEN {{ threshold }} THEN CAST({{ code(node.splits) }} > {{ node.splits }}."cut" AS UTINYINT)
        ELSE CAST({{ code(node.splits) }} <> {{ node.splits }}."cut" AS UTINYINT)
      END
    END AS {{ type }}
  ) AS {{ node.column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ codes }} AS c
{% for node in nodes %}
LEFT JOIN splits AS {{ node.splits }} ON {{ node.splits }}."node" = c.{{ node.column }}
{% endfor %}
