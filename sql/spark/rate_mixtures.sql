-- Rate mixtures of models: each row gives each mixture up to {{ whole }} points, half of them if
-- its class has the highest log-odds, half as its loss is small. Equal rows are rated once.
-- inputs: distinct coded rows with the leaf of each tree, and the votes of the nodes
-- outputs: one row with the sum of points of each mixture
-- reads private rows: yes
WITH scored AS (
  SELECT
{% for model in models %}
    {{ model.value }} AS {{ model.name }},
{% endfor %}
    `class`,
    `rows`
  FROM {{ codes | indent(2) }}
)
, odds AS (
  SELECT
{% for mixture in mixtures %}
{% for odd in mixture.odds %}
    {{ odd.value }} AS {{ odd.name }},
{% endfor %}
{% endfor %}
    `class`,
    `rows`
  FROM scored
)
, highest AS (
  SELECT
    *,
{% for mixture in mixtures %}
    {{ mixture.highest.value }} AS {{ mixture.highest.name }}{{ loop | comma }}
{% endfor %}
  FROM odds
)
, powers AS (
  SELECT
{% for mixture in mixtures %}
{% for power in mixture.powers %}
    {{ power.value }} AS {{ power.name }},
{% endfor %}
{% endfor %}
    `rows`
  FROM highest
)
, losses AS (
  SELECT
    *,
{% for mixture in mixtures %}
    {{ mixture.loss.value }} AS {{ mixture.loss.name }}{{ loop | comma }}
{% endfor %}
  FROM powers
)
SELECT
{% for mixture in mixtures %}
  CAST(COALESCE(SUM(`rows` * CAST({{ mixture.points.value }} AS BIGINT)), 0) AS BIGINT) AS {{ mixture.points.name }}{{ loop | comma }}
{% endfor %}
FROM losses
