-- Move every row of a split node to the child that its cell leads to; other rows stay.
-- inputs: the coded rows; kind, child, cell and cut of a row's node, from constant arrays
-- outputs: the coded rows with new nodes
-- reads private rows: yes
SELECT
  * EXCEPT ({% for node in nodes %}{{ node.column }}{% if not loop.last %}, {% endif %}{% endfor %}),
{% for node in nodes %}
  CASE {{ node.kind }}
    WHEN {{ multiway }} THEN {{ node.child }} + {{ node.cell }}
    WHEN {{ threshold }} THEN {{ node.child }} + CAST({{ node.cell }} > {{ node.cut }} AS INT)
    WHEN {{ equals }} THEN {{ node.child }} + CAST({{ node.cell }} <> {{ node.cut }} AS INT)
    ELSE {{ node.column }}
  END AS {{ node.column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ source }}
