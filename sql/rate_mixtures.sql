-- Rate mixtures of models: each row gives each mixture up to {{ whole }} points, half of them if
-- its class has the highest log-odds, half as its loss is small. Equal rows are rated once.
-- inputs: the TEMP table of codes, the models' trees as sums of codes, their votes in one list
-- outputs: one row with the sum of points of each mixture
-- reads private rows: yes
WITH alike AS (
  SELECT {% for word in words %}{{ word }}, {% endfor %}{{ node_class }} % {{ classes }} AS "class", COUNT(*) AS "rows"
  FROM {{ codes }}
{% if one_in > 1 %}
  WHERE hash({% for word in words %}{{ word }}{% if not loop.last %}, {% endif %}{% endfor %}) % {{ one_in }} = 0
{% endif %}
  GROUP BY ALL
)
, placed AS (
  SELECT
{% for node, leaf in leaves.items() %}
    {{ node }} AS {{ leaf }},
{% endfor %}
    "class",
    "rows"
  FROM alike
)
, scored AS (
  SELECT
{% for model in models %}
{% set number = loop.index0 %}
{% for terms in model %}
    CAST({% for term in terms %}v."votes"[{{ term.leaf }} + {{ term.before }}]{% if not loop.last %} + {% endif %}{% else %}0{% endfor %} AS DOUBLE) AS "s{{ number }}_{{ loop.index0 }}",
{% endfor %}
{% endfor %}
    "class",
    "rows"
  FROM placed, (SELECT CAST({{ votes }} AS BIGINT[]) AS "votes") AS v
)
, odds AS (
  SELECT
{% for mixture in mixtures %}
{% set number = loop.index0 %}
{% for label in range(classes) %}
    ({% for model, weight in mixture %}{{ weight }} * "s{{ model }}_{{ label }}"{% if not loop.last %} + {% endif %}{% endfor %}) / {{ scale }}e0 AS "z{{ number }}_{{ label }}",
{% endfor %}
{% endfor %}
    "class",
    "rows"
  FROM scored
)
, lost AS (
  SELECT
{% for mixture in mixtures %}
{% set number = loop.index0 %}
    greatest({% for label in range(classes) %}"z{{ number }}_{{ label }}"{% if not loop.last %}, {% endif %}{% endfor %}) AS "top{{ number }}",
    CASE "class"{% for label in range(classes) %} WHEN {{ label }} THEN "z{{ number }}_{{ label }}"{% endfor %} END AS "own{{ number }}",
    ln({% for label in range(classes) %}exp("z{{ number }}_{{ label }}" - "top{{ number }}"){% if not loop.last %} + {% endif %}{% endfor %}) + "top{{ number }}" - "own{{ number }}" AS "loss{{ number }}",
{% endfor %}
    "rows"
  FROM odds
)
SELECT
{% for mixture in mixtures %}
{% set number = loop.index0 %}
  CAST(COALESCE(SUM("rows" * (
    CASE WHEN "own{{ number }}" = "top{{ number }}" THEN {{ whole // 2 }} ELSE 0 END
    + CAST(floor({{ whole // 2 }} * (1 - greatest(0, least(1, "loss{{ number }}" / (4 * ln({{ classes }})))))) AS BIGINT)
  )), 0) AS BIGINT) AS "points{{ number }}"{% if not loop.last %},{% endif %}

{% endfor %}
FROM lost
