-- Sum the gradients and hessians of the logistic loss by leaf, for some trees, as whole numbers.
-- A class has the share p = e^score / (sum of e^score), rounded down to multiples of 1/{{ whole }}.
-- They are summed as DOUBLE, which is exact below 2^53, so for fewer than 2^37 rows.
-- inputs: the TEMP table of codes and scores; the trees' leaves, stored or as sums of codes
-- outputs: one row per tree and leaf that has rows
-- reads private rows: yes
WITH layer0 AS (
  SELECT
    *,
{% for tree in trees %}
    {{ tree.value }} AS {{ tree.name }},
{% endfor %}
    {{ node_class }} % {{ classes }} AS "class"
  FROM {{ codes | indent(2) }}
)
{% include "parts/layers.sql" %}
, shares AS (
  SELECT
    *,
{% for label, share in shares.items() %}
    {{ share }} AS "p{{ label }}"{{ loop | comma }}
{% endfor %}
  FROM layer{{ layers | length }}
)
, gradients AS {% if trees | length > 1 %}MATERIALIZED {% endif %}(
  SELECT
{% for tree in trees %}
    {{ tree.name }},
{% endfor %}
{% for label in shares %}
    CASE "class" WHEN {{ label }} THEN {{ whole }}e0 ELSE 0e0 END - "p{{ label }}" AS "g{{ label }}",
    floor({{ hessian_numerator }}e0 * "p{{ label }}" * ({{ whole }}e0 - "p{{ label }}") / {{ whole * hessian_denominator }}e0) AS "h{{ label }}"{{ loop | comma }}
{% endfor %}
  FROM shares
)
{% for tree in trees %}
SELECT
  {{ loop.index0 }} AS "tree",
  {{ tree.name }} AS "node",
{% for label in shares %}
  CAST(SUM("g{{ label }}") AS BIGINT) AS "g{{ label }}",
  CAST(SUM("h{{ label }}") AS BIGINT) AS "h{{ label }}"{{ loop | comma }}
{% endfor %}
FROM gradients
GROUP BY {{ tree.name }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
