-- Rate mixtures of models: each row gives each mixture up to {{ whole }} points, half of them if
-- its class has the highest log-odds, and up to half for a small loss. If many are equal, they are
-- rated together.
-- inputs: the TEMP table of codes, the models' votes and their mixtures (see
-- dpforest_duckdb/engine/coded_rows/mixed_votes.py)
-- outputs: the sum of points of each mixture; none if there are no rows
-- reads private rows: yes
WITH rated AS (
  SELECT {% for word in words %}{{ word }}, {% endfor %}{{ node_class }} % {{ classes }} AS "class", {% if grouped %}COUNT(*){% else %}1{% endif %} AS "rows"
  FROM {{ codes }}
{% if one_in > 1 %}
  WHERE hash({{ words | join(", ") }}) % {{ one_in }} = 0
{% endif %}
{% if grouped %}
  GROUP BY ALL
{% endif %}
)
, rooted AS (
  SELECT *{% for root in votes.roots %}, {{ root.value }} AS {{ root.name }}{% endfor %}

  FROM rated
)
, placed AS (
  SELECT
{% for place in votes.places %}
    {{ place.value }} AS {{ place.name }},
{% endfor %}
    "class",
    "rows"
  FROM rooted
)
, packed AS (
  SELECT
{% for sum in votes.packed %}
    {{ sum.value }} AS {{ sum.name }},
{% endfor %}
    "class",
    "rows"
  FROM placed, (SELECT {{ votes.votes }} AS "votes")
)
, mixed AS (
  SELECT
{% for sum in votes.mixed %}
    {{ sum.value }} AS {{ sum.name }},
{% endfor %}
    "class",
    "rows",
    "mixture"
  FROM packed, (VALUES {% for mixture in mixtures %}({{ mixture }}){% if not loop.last %}, {% endif %}{% endfor %}) AS mixtures("mixture")
)
{% if votes.halves %}
, halved AS (
  SELECT
{% for half in votes.halves %}
    {{ half.value }} AS {{ half.name }},
{% endfor %}
    "class",
    "rows",
    "mixture"
  FROM mixed
)
{% endif %}
, odds AS (
  SELECT
{% for odd in points.odds %}
    {{ odd.value }} AS {{ odd.name }},
{% endfor %}
    "class",
    "rows",
    "mixture"
  FROM {% if votes.halves %}halved{% else %}mixed{% endif %}

)
, highest AS (
  SELECT
    *,
    {{ points.highest.value }} AS {{ points.highest.name }}
  FROM odds
)
, powers AS (
  SELECT
{% for power in points.powers %}
    {{ power.value }} AS {{ power.name }},
{% endfor %}
    "rows",
    "mixture"
  FROM highest
)
, losses AS (
  SELECT
    *,
    {{ points.loss.value }} AS {{ points.loss.name }}
  FROM powers
)
SELECT "mixture", CAST(SUM("rows" * CAST({{ points.points.value }} AS BIGINT)) AS BIGINT) AS "points"
FROM losses
GROUP BY "mixture"
