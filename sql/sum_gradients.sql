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
{% for score in scores %}
    exp(({{ score }} - {{ highest }}) / {{ scale }}e0) AS "e{{ loop.index0 }}",
{% endfor %}
    {{ node_class }} % {{ scores | length }} AS "class"
  FROM {{ codes }}
)
, shares AS (
  SELECT
    *,
{% for label in labels %}
    CAST(floor({{ whole }} * "e{{ label }}" / ({% for score in scores %}"e{{ loop.index0 }}"{% if not loop.last %} + {% endif %}{% endfor %})) AS BIGINT) AS "p{{ label }}"{% if not loop.last %},{% endif %}

{% endfor %}
  FROM weighed
)
, gradients AS MATERIALIZED (
  SELECT
{% for tree in trees %}
    {{ tree.leaf }},
{% endfor %}
{% for label in labels %}
    CASE "class" WHEN {{ label }} THEN {{ whole }} ELSE 0 END - "p{{ label }}" AS "g{{ label }}",
    {{ steep }} * "p{{ label }}" * ({{ whole }} - "p{{ label }}") // {{ whole * flat }} AS "h{{ label }}"{% if not loop.last %},{% endif %}

{% endfor %}
  FROM shares
)
{% for tree in trees %}
SELECT
  {{ loop.index0 }} AS "tree",
  {{ tree.leaf }} AS "node",
{% for label in labels %}
  CAST(SUM("g{{ label }}") AS BIGINT) AS "g{{ label }}",
  CAST(SUM("h{{ label }}") AS BIGINT) AS "h{{ label }}"{% if not loop.last %},{% endif %}

{% endfor %}
FROM gradients
GROUP BY {{ tree.leaf }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
