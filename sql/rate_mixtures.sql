-- Rate mixtures of models: each row gives each mixture up to {{ whole }} points, half of them if
-- its class has the highest log-odds, and up to half for a small loss. Equal rows are rated once.
-- inputs: the TEMP table of codes, the nodes of the models' trees, their votes for several scores in
-- one integer (see dpforest_duckdb/engine/packed_votes.py), the weights of each mixture
-- outputs: the sum of points of each mixture; none if there are no rows
-- reads private rows: yes
WITH alike AS (
  SELECT {% for word in words %}{{ word }}, {% endfor %}{{ node_class }} % {{ classes }} AS "class", COUNT(*) AS "rows"
  FROM {{ codes }}
{% if one_in > 1 %}
  WHERE hash({{ words | join(", ") }}) % {{ one_in }} = 0
{% endif %}
  GROUP BY ALL
)
, placed AS (
  SELECT
{% for leaf, node in nodes.items() %}
    {{ node }} AS {{ leaf }},
{% endfor %}
    "class",
    "rows"
  FROM alike
)
, packed AS (
  SELECT
{% for column, terms in packed.items() %}
    0{% for some in terms | batch(100) %} + ({% for term in some %}v."votes"[{{ term.leaf }} + {{ term.before }}]{% if not loop.last %} + {% endif %}{% endfor %}){% endfor %} AS {{ column }},
{% endfor %}
    "class",
    "rows"
  FROM placed, (SELECT {{ votes }} AS "votes") AS v
)
, scored AS (
  SELECT
{% for model in models %}
{% set number = loop.index0 %}
{% for score in model %}
    CAST({{ score }} AS DOUBLE) AS "s{{ number }}_{{ loop.index0 }}",
{% endfor %}
{% endfor %}
    "class",
    "rows"
  FROM packed
)
, odds AS (
  SELECT
{% for odd in mixture.odds %}
    {{ odd.value }} AS {{ odd.name }},
{% endfor %}
    "class",
    "rows",
    "mixture"
  FROM scored, (
    VALUES
{% for numbers in mixtures %}
      ({{ loop.index0 }}{% for number in numbers %}, {{ number }}{% endfor %}){{ loop | comma }}
{% endfor %}
  ) AS mixtures("mixture"{% for weight in weights %}, {{ weight }}{% endfor %})
)
, powers AS (
  SELECT
{% for power in mixture.powers %}
    {{ power.value }} AS {{ power.name }},
{% endfor %}
    "rows",
    "mixture"
  FROM odds
)
, losses AS (
  SELECT
    *,
    {{ mixture.loss.value }} AS {{ mixture.loss.name }}
  FROM powers
)
SELECT "mixture", CAST(SUM("rows" * CAST({{ mixture.points.value }} AS BIGINT)) AS BIGINT) AS "points"
FROM losses
GROUP BY "mixture"
