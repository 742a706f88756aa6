-- Sum the gradients and hessians of the logistic loss by leaf, for some trees, as integers.
-- A class has the share p = e^score / (sum of e^score), rounded down to multiples of 1/{{ whole }}.
-- inputs: the TEMP table of codes and scores, the trees as CASE over codes
-- outputs: one row per tree and leaf that has rows
-- reads private rows: yes
WITH weighed AS (
  SELECT
{% for tree in trees %}
    {{ tree.node }} AS {{ tree.leaf }},
{% endfor %}
{% for power in powers %}
    {{ power.value }} AS {{ power.name }},
{% endfor %}
    {{ node_class }} % {{ classes }} AS "class"
  FROM {{ codes }}
)
, shares AS (
  SELECT
    *,
{% for label, share in shares.items() %}
    CAST({{ share }} AS INTEGER) AS "p{{ label }}"{% if not loop.last %},{% endif %}

{% endfor %}
  FROM weighed
)
, gradients AS {% if trees | length > 1 %}MATERIALIZED {% endif %}(
  SELECT
{% for tree in trees %}
    {{ tree.leaf }},
{% endfor %}
{% for label in shares %}
    CASE "class" WHEN {{ label }} THEN {{ whole }} ELSE 0 END - "p{{ label }}" AS "g{{ label }}",
    ((CAST({{ steep }} AS BIGINT) * "p{{ label }}" * ({{ whole }} - "p{{ label }}")) >> {{ bits }}){% if flat > 1 %} // {{ flat }}{% endif %} AS "h{{ label }}"{% if not loop.last %},{% endif %}

{% endfor %}
  FROM shares
)
{% for tree in trees %}
SELECT
  {{ loop.index0 }} AS "tree",
  {{ tree.leaf }} AS "node",
{% for label in shares %}
  CAST(SUM("g{{ label }}") AS BIGINT) AS "g{{ label }}",
  CAST(SUM("h{{ label }}") AS BIGINT) AS "h{{ label }}"{% if not loop.last %},{% endif %}

{% endfor %}
FROM gradients
GROUP BY {{ tree.leaf }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
