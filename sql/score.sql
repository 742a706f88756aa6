-- Scored by a decision forest of dpforest-duckdb {{ version | comment }}; reads the table it scores, nothing else.
-- model: {{ model | comment }}
-- predicts: {{ predicts | comment }}
-- recipe: {{ recipe | comment }}
-- guarantee: {{ guarantee | comment }}
-- private: {% if private %}yes{% else %}NO{% endif %}

{% if advice %}
-- {{ advice | comment }}
{% endif %}
-- A number outside its bounds counts as the nearest bound; an unknown category goes to an ELSE branch.
{{ opening }}WITH
{% for layer in layers %}
{% for table in layer.tables %}
{{ table.cte }} AS (
  {{ table.select }}
),
{% endfor %}
{{ layer.cte }} {{ cte_as }} (
  SELECT
{% for helper in layer.helpers %}
    -- {{ helper.note | comment }}
    {{ helper.value }} AS {{ helper.column }}{% if layer.kept or not loop.last %},{% endif %}

{% endfor %}
{# last, so that a column of the table with a name of ours is the one that gets another name #}
{% for column in layer.kept %}
    {{ column }}{{ loop | comma }}
{% endfor %}
  FROM {% if loop.first %}{{ source }}{% else %}{{ loop.previtem.cte }}{% endif %} AS t{% if layer.tables %}, {{ (layer.tables | last).cte }} AS s{% endif %}{{ cte_end }}
){{ loop | comma }}
{% endfor %}
SELECT
{% for column in kept %}
  {{ column }},
{% endfor %}
{% if cast %}
  CAST({{ prediction }} AS {{ cast }}) AS {{ prediction_column }},
{% else %}
  {{ prediction }} AS {{ prediction_column }},
{% endif %}
{% for share in shares %}
  {{ share.value }} AS {{ share.name }}{{ loop | comma }}
{% endfor %}
{{ into }}FROM {{ (layers | last).cte }} AS t{{ closing }}
