-- Find the node of every row in trees whose splits have not moved the stored rows yet: the root, or
-- the node that the tests of the first splits give.
-- inputs: the TEMP table of codes, the splits as constants
-- outputs: codes and node_class = node * classes + class for some trees, for a statement that reads
-- them at once
-- reads private rows: yes
SELECT
{% for word in words %}
  {{ word }},
{% endfor %}
{% for node_class in node_classes %}
  CAST({{ node_class.value }} AS {{ type }}) AS {{ node_class.name }}{{ loop | comma }}
{% endfor %}
FROM {{ codes }}
