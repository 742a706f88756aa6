-- The coded rows with one node each: a row of several trees becomes one row for each of them.
-- inputs: the coded rows
-- outputs: codes, class and node
-- reads private rows: yes
SELECT
{% for word in words %}
  {{ word }},
{% endfor %}
  `class`,
  {%+ if nodes | length == 1 %}{{ nodes[0] }}{% else %}explode(array({{ nodes | join(", ") }})){% endif %} AS `node`
FROM {{ codes }}
