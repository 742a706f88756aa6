-- The coded rows with the node of each tree that they have reached.
-- inputs: the coded rows; the nodes, by bit sets from constant arrays
-- outputs: codes, class and a node for each tree
-- reads private rows: yes
SELECT
{% for word in words %}
  {{ word }},
{% endfor %}
  `class`,
{% for node in nodes %}
  {{ node.value }} AS {{ node.name }}{{ loop | comma }}
{% endfor %}
FROM {{ codes }}
