-- The rows with the leaf of each of some trees that they fall into.
-- inputs: coded rows; the leaves, by bit sets from constant arrays
-- outputs: the rows and a leaf for each tree
-- reads private rows: yes
SELECT
  *,
{% for leaf in leaves %}
  {{ leaf.value }} AS {{ leaf.name }}{{ loop | comma }}
{% endfor %}
FROM {{ source }}
