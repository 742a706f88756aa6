-- Add the votes of trees to the scores of every row (log-odds in millionths).
-- inputs: the coded rows with the leaf of each tree, the votes of the nodes as constant arrays
-- outputs: the coded rows and their scores
-- reads private rows: yes
SELECT
{% for column in kept %}
  {{ column }},
{% endfor %}
{% for score in scores %}
{% set number = loop.index0 %}
  {% if scored %}{{ score }}{% else %}CAST(0 AS BIGINT){% endif %}{% for tree in trees %} + get({{ tree.votes[number] }}, {{ tree.leaf }}){% endfor %} AS {{ score }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ codes }}
