-- Count the rows of each class by the bins of their scores; a score is a sum of leaf votes.
-- inputs: the coded rows, the votes of every node as constant arrays
-- outputs: one row per combination of bins and class that has rows
-- reads private rows: yes
SELECT
{% for bin in bins %}
  {{ bin }},
{% endfor %}
  `class`,
  COUNT(*) AS `rows`
FROM (
  SELECT
{% for score in scores %}
    {%+ for cut in cuts %}{% if not loop.first %} + {% endif %}CAST({{ score.column }} > {{ cut }} AS INT){% endfor %} AS {{ score.bin }},
{% endfor %}
    `class`
  FROM (
    SELECT
{% for score in scores %}
      {%+ for node in nodes %}{% if not loop.first %} + {% endif %}get({{ score.votes }}, {{ node }}){% endfor %} AS {{ score.column }},
{% endfor %}
      `class`
    FROM {{ codes | indent(4) }}
  )
)
GROUP BY {% for bin in bins %}{{ bin }}, {% endfor %}`class`
