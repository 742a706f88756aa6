-- Store the node that every row has reached: later splits start from there.
-- inputs: the coded rows; the nodes that they reach, by bit sets from constant arrays
-- outputs: the coded rows with new nodes
-- reads private rows: yes
SELECT
  *{% if replaced %} EXCEPT ({{ replaced | join(", ") }}){% endif %},
{% for node in nodes %}
  {{ node.value }} AS {{ node.name }}{{ loop | comma }}
{% endfor %}
FROM {{ codes }}
