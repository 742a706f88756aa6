-- Rate mixtures of models: each row gives each mixture up to {{ whole }} points, half of them if
-- its class has the highest log-odds, half as its loss is small. Equal rows are rated once.
-- inputs: distinct coded rows with the leaf of each tree, and the votes of the nodes
-- outputs: one row with the sum of points of each mixture
-- reads private rows: yes
WITH scored AS (
  SELECT
{% for model in models %}
    {{ model.value }} AS {{ model.column }},
{% endfor %}
    `class`,
    `rows`
  FROM {{ codes }}
)
, odds AS (
  SELECT
{% for mixture in mixtures %}
{% for odd in mixture.odds %}
    {{ odd.value }} AS {{ odd.column }},
{% endfor %}
{% endfor %}
    `class`,
    `rows`
  FROM scored
)
, powers AS (
  SELECT
{% for mixture in mixtures %}
    {{ mixture.highest }} - CASE `class`{% for odd in mixture.odds %} WHEN {{ loop.index0 }} THEN {{ odd.column }}{% endfor %} END AS {{ mixture.below }},
{% for odd in mixture.odds %}
    {{ odd.power.eighths }} AS {{ odd.power.eighth }},
    {{ odd.power.remainder }} AS {{ odd.power.rest }},
{% endfor %}
{% endfor %}
    `rows`
  FROM odds
)
, rooted AS (
  SELECT
{% for mixture in mixtures %}
    {{ mixture.below }},
    {{ mixture.sum.root }} AS {{ mixture.sum.column }},
{% endfor %}
    `rows`
  FROM powers
)
, reduced AS (
  SELECT
{% for mixture in mixtures %}
    {{ mixture.below }},
    {{ mixture.sum.ratio }} AS {{ mixture.sum.column }},
{% endfor %}
    `rows`
  FROM rooted
)
, lost AS (
  SELECT
{% for mixture in mixtures %}
    {{ mixture.below }},
    {{ mixture.sum.logarithm }} + {{ mixture.below }} / {{ scale }}e0 AS {{ mixture.sum.column }},
{% endfor %}
    `rows`
  FROM reduced
)
SELECT
{% for mixture in mixtures %}
  CAST(COALESCE(SUM(`rows` * (
    CASE WHEN {{ mixture.below }} = 0 THEN {{ whole // 2 }} ELSE 0 END
    + CAST(floor({{ whole // 2 }}e0 * (1e0 - greatest(0e0, least(1e0, {{ mixture.sum.column }} / {{ worst }})))) AS BIGINT)
  )), 0) AS BIGINT) AS {{ mixture.points }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM lost
