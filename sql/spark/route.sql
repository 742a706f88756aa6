-- Store the node that every row has reached: later splits start from there.
-- inputs: the coded rows; the nodes that they reach, by bit sets from constant arrays
-- outputs: the coded rows with new nodes
-- reads private rows: yes
SELECT
  *{% if replaced %} EXCEPT ({% for column in replaced %}{{ column }}{% if not loop.last %}, {% endif %}{% endfor %}){% endif %},
{% for node in nodes %}
  {{ node.value }} AS {{ node.column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ codes }}
