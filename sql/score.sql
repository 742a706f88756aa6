-- Scored by a decision forest of dpforest-duckdb {{ version | comment }}; reads the table it scores, nothing else.
-- model: {{ model | comment }}
-- recipe: {{ recipe | comment }}
-- guarantee: {{ guarantee | comment }}
-- private: {% if private %}yes{% else %}NO{% endif %}

-- Values that a CASE does not name (NULL, NaN, out of the domain) take its ELSE.
{{ opening }}WITH {% for layer in layers %}
{{ layer.cte }} AS (
  SELECT
    t.*,
{% for helper in layer.helpers %}
    -- {{ helper.told | comment }}
    {{ helper.value }} AS {{ helper.column }}{% if not loop.last %},{% endif %}

{% endfor %}
  FROM {% if loop.first %}{{ source }}{% else %}{{ loop.previtem.cte }}{% endif %} AS t
),
{% endfor %}
{{ cte }} AS (
  SELECT
    t.*{% if layers %} EXCLUDE ({% for layer in layers %}{% set outer = loop %}{% for helper in layer.helpers %}{{ helper.column }}{% if not (outer.last and loop.last) %}, {% endif %}{% endfor %}{% endfor %}){% endif %},
{% for score in scores %}
    -- votes for {{ score.label | comment }}
    {{ score.votes }} AS {{ score.column }}{% if not loop.last %},{% endif %}

{% endfor %}
  FROM {% if layers %}{{ (layers | last).cte }}{% else %}{{ source }}{% endif %} AS t
)
SELECT
  s.* EXCLUDE ({% for score in scores %}{{ score.column }}{% if not loop.last %}, {% endif %}{% endfor %}),
{% if cast %}
  CAST({{ prediction }} AS {{ cast }}) AS {{ prediction_column }},
{% else %}
  {{ prediction }} AS {{ prediction_column }},
{% endif %}
{% for share in shares %}
  {{ share.share }} AS {{ share.column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ cte }} AS s{{ closing }}
