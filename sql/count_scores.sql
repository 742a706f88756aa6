-- Count the rows of each class by the bins of their scores; a score is a sum of leaf votes.
-- inputs: the TEMP table of codes, the votes of every node as constants
-- outputs: one row per combination of bins and class that has rows
-- reads private rows: yes
WITH scored AS (
  SELECT
{% for score in scores %}
{% for node_class in node_classes %}
    {%+ if loop.first %}CAST(0 AS BIGINT) {% endif %}+ v.{{ score.name }}[c.{{ node_class }} // {{ classes }} + 1]{% if loop.last %} AS {{ score.name }},{% endif %}

{% endfor %}
{% endfor %}
    c.{{ node_classes[0] }} % {{ classes }} AS "class"
  FROM {{ codes | indent(2) }} AS c, (
    SELECT
{% for score in scores %}
      {{ score.value }} AS {{ score.name }}{{ loop | comma }}
{% endfor %}
  ) AS v
)
SELECT
{% for score in scores %}
  {%+ for cut in cuts %}{% if not loop.first %} + {% endif %}CAST(s.{{ score.name }} > {{ cut }} AS INTEGER){% endfor %} AS "bin{{ loop.index0 }}",
{% endfor %}
  s."class",
  COUNT(*) AS "rows"
FROM scored AS s
GROUP BY ALL
