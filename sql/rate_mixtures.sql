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
    CAST({% for some in terms | batch(100) %}({% for term in some %}v."votes"[{{ term.leaf }} + {{ term.before }}]{% if not loop.last %} + {% endif %}{% endfor %}){% if not loop.last %} + {% endif %}{% else %}0{% endfor %} AS DOUBLE) AS "s{{ number }}_{{ loop.index0 }}",
{% endfor %}
{% endfor %}
    "class",
    "rows"
  FROM placed, (SELECT CAST({{ votes }} AS BIGINT[]) AS "votes") AS v
)
, odds AS (
  SELECT
{% for mixture in mixtures %}
{% for odd in mixture.odds %}
    {{ odd.value }} AS {{ odd.name }},
{% endfor %}
{% endfor %}
    "class",
    "rows"
  FROM scored
)
, powers AS (
  SELECT
{% for mixture in mixtures %}
{% for power in mixture.powers %}
    {{ power.value }} AS {{ power.name }},
{% endfor %}
{% endfor %}
    "rows"
  FROM odds
)
, losses AS (
  SELECT
    *,
{% for mixture in mixtures %}
    {{ mixture.loss.value }} AS {{ mixture.loss.name }}{% if not loop.last %},{% endif %}

{% endfor %}
  FROM powers
)
SELECT
{% for mixture in mixtures %}
  CAST(COALESCE(SUM("rows" * CAST({{ mixture.points.value }} AS BIGINT)), 0) AS BIGINT) AS {{ mixture.points.name }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM losses
