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
{% if scores | length == 1 %}
    -- the other class has score 0: of the two weights, relative to the larger one, one is 1
    exp(-abs({{ scores[0] }}) / {{ scale }}e0) AS "smaller",
    {{ scores[0] }} > 0 AS "likely",
{% else %}
{% for score in scores %}
    exp(({{ score }} - {{ highest }}) / {{ scale }}e0) AS "e{{ loop.index0 }}",
{% endfor %}
{% endif %}
    {{ node_class }} % {{ classes }} AS "class"
  FROM {{ codes }}
)
, shares AS (
  SELECT
    *,
{% if scores | length == 1 %}
    CAST(floor({{ whole }} * CASE WHEN "likely" THEN 1e0 ELSE "smaller" END / (1e0 + "smaller")) AS INTEGER) AS "p1"
{% else %}
{% for label in labels %}
    CAST(floor({{ whole }} * "e{{ label }}" / ({% for score in scores %}"e{{ loop.index0 }}"{% if not loop.last %} + {% endif %}{% endfor %})) AS INTEGER) AS "p{{ label }}"{% if not loop.last %},{% endif %}

{% endfor %}
{% endif %}
  FROM weighed
)
, gradients AS {% if trees | length > 1 %}MATERIALIZED {% endif %}(
  SELECT
{% for tree in trees %}
    {{ tree.leaf }},
{% endfor %}
{% for label in labels %}
    CASE "class" WHEN {{ label }} THEN {{ whole }} ELSE 0 END - "p{{ label }}" AS "g{{ label }}",
    ((CAST({{ steep }} AS BIGINT) * "p{{ label }}" * ({{ whole }} - "p{{ label }}")) >> {{ bits }}){% if flat > 1 %} // {{ flat }}{% endif %} AS "h{{ label }}"{% if not loop.last %},{% endif %}

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
