-- Add the votes of trees to the scores of every row (log-odds in millionths).
-- inputs: the coded rows; the leaf of each tree and its votes, from constant arrays
-- outputs: the coded rows and their scores
-- reads private rows: yes
SELECT
{% for word in words %}
  {{ word }},
{% endfor %}
  `class`,
  `node0`,
{% for score in scores %}
  {{ score.value }} AS {{ score.name }}{{ loop | comma }}
{% endfor %}
{% if leaves %}
FROM (
  SELECT *, {% for leaf in leaves %}{{ leaf.value }} AS {{ leaf.name }}{% if not loop.last %}, {% endif %}{% endfor %}

  FROM {{ codes }}
)
{% else %}
FROM {{ codes }}
{% endif %}
