-- Add the votes of trees to the scores of every row (log-odds in millionths).
-- inputs: the TEMP table of codes, the trees as CASE over codes, their votes as constants
-- outputs: a new table of codes and scores
-- reads private rows: yes
CREATE TEMP TABLE {{ voted }} AS
SELECT
{% for column in kept %}
  {{ column }},
{% endfor %}
{% for score in scores %}
{% set number = loop.index0 %}
  {% if scored %}{{ score }}{% else %}CAST(0 AS BIGINT){% endif %}{% for tree in trees %} + {{ tree.votes[number] }}[{{ tree.leaf }} + 1]{% endfor %} AS {{ score }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM (
  SELECT
    *,
{% for tree in trees %}
    {{ tree.node }} AS {{ tree.leaf }}{% if not loop.last %},{% endif %}

{% endfor %}
  FROM {{ codes }}
)
