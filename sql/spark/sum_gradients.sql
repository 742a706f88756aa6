-- Sum the gradients and hessians of the logistic loss by leaf, for some trees, as integers.
-- A class has the share p = e^score / (sum of e^score), rounded down to multiples of 1/{{ whole }}.
-- inputs: the coded rows with their scores and the leaf of each tree
-- outputs: one row per tree and leaf that has rows
-- reads private rows: yes
WITH layer0 AS (
  SELECT
    *,
    array({{ leaves | join(", ") }}) AS `leaves`
  FROM {{ codes | indent(2) }}
)
{% include "parts/layers.sql" %}
, shares AS (
  SELECT
{% for label, share in shares.items() %}
    {{ share }} AS `p{{ label }}`,
{% endfor %}
    `class`,
    `leaves`
  FROM layer{{ layers | length }}
)
, gradients AS (
  SELECT
{% for label in shares %}
    CASE `class` WHEN {{ label }} THEN {{ whole }} ELSE 0 END - `p{{ label }}` AS `g{{ label }}`,
    ({{ hessian_numerator }} * `p{{ label }}` * ({{ whole }} - `p{{ label }}`)) div {{ whole * hessian_denominator }} AS `h{{ label }}`,
{% endfor %}
    posexplode(`leaves`) AS (`tree`, `node`)
  FROM shares
)
SELECT
  `tree`,
  `node`,
{% for label in shares %}
  SUM(`g{{ label }}`) AS `g{{ label }}`,
  SUM(`h{{ label }}`) AS `h{{ label }}`{{ loop | comma }}
{% endfor %}
FROM gradients
GROUP BY `tree`, `node`
