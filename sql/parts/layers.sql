{# The CTEs of the layers: each adds columns to the one before, and layer0 has the rows. #}
{% for layer in layers %}
, layer{{ loop.index }} AS (
  SELECT
    *,
{% for column in layer %}
    {{ column.value }} AS {{ column.name }}{{ loop | comma }}
{% endfor %}
  FROM layer{{ loop.index0 }}
)
{% endfor %}
