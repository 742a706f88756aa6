-- Rate mixtures of the rows' scores and the votes of a tree: each row gives each mixture up to
-- {{ whole }} points, half of them if its class has the highest odds, half as its loss is small.
-- inputs: the TEMP table of codes and scores, the tree as CASE over codes, its votes as constants;
-- outputs: one row with the sum of points of each mixture
-- reads private rows: yes
WITH placed AS (
  SELECT
{% for score in scores %}
    CAST({{ score }} AS DOUBLE) AS "s{{ loop.index0 }}",
{% endfor %}
    {{ tree.node }} AS "leaf",
    {{ node_class }} % {{ scores | length }} AS "class"
  FROM {{ codes }}
)
, odds AS (
  SELECT
{% for mixture in mixtures %}
{% set number = loop.index0 %}
{% for votes in tree.votes %}
    ({{ mixture.scores }} * "s{{ loop.index0 }}" + {{ mixture.tree }}e0 * {{ votes }}["leaf" + 1]) / {{ scale }}e0 AS "z{{ number }}_{{ loop.index0 }}",
{% endfor %}
{% endfor %}
    "class"
  FROM placed
)
, lost AS (
  SELECT
{% for mixture in mixtures %}
{% set number = loop.index0 %}
    greatest({% for _ in scores %}"z{{ number }}_{{ loop.index0 }}"{% if not loop.last %}, {% endif %}{% endfor %}) AS "top{{ number }}",
    CASE "class"{% for _ in scores %} WHEN {{ loop.index0 }} THEN "z{{ number }}_{{ loop.index0 }}"{% endfor %} END AS "own{{ number }}",
    ln({% for _ in scores %}exp("z{{ number }}_{{ loop.index0 }}" - "top{{ number }}"){% if not loop.last %} + {% endif %}{% endfor %}) + "top{{ number }}" - "own{{ number }}" AS "loss{{ number }}"{% if not loop.last %},{% endif %}

{% endfor %}
  FROM odds
)
SELECT
{% for mixture in mixtures %}
{% set number = loop.index0 %}
  CAST(COALESCE(SUM(
    CASE WHEN "own{{ number }}" = "top{{ number }}" THEN {{ whole // 2 }} ELSE 0 END
    + CAST(floor({{ whole // 2 }} * (1 - greatest(0, least(1, "loss{{ number }}" / (4 * ln({{ scores | length }})))))) AS BIGINT)
  ), 0) AS BIGINT) AS "points{{ number }}"{% if not loop.last %},{% endif %}

{% endfor %}
FROM lost
