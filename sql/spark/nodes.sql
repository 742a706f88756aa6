-- The coded rows with one node each: a row of several trees becomes one row for each of them.
-- inputs: the coded rows; outputs: cells, class and node
-- reads private rows: yes
{% if nodes | length == 1 %}
SELECT `cells`, `class`, {{ nodes[0] }} AS `node`
{% else %}
SELECT `cells`, `class`, explode(array({% for node in nodes %}{{ node }}{% if not loop.last %}, {% endif %}{% endfor %})) AS `node`
{% endif %}
FROM {{ codes }}
