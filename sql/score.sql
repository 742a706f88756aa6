-- Scored by a decision forest of dpforest-duckdb {{ version | comment }}; reads the table it scores, nothing else.
-- model: {{ model | comment }}
-- recipe: {{ recipe | comment }}
-- guarantee: {{ guarantee | comment }}
-- private: {% if private %}yes{% else %}NO{% endif %}

-- Values that a CASE does not name (NULL, NaN, out of the domain) take its ELSE.
{{ opening }}WITH {% if leaves %}{{ leaf_cte }} AS (
  SELECT
    t.*,
{% for leaf in leaves %}
    -- leaf of tree {{ loop.index }}
    {{ leaf.number }} AS {{ leaf.column }}{% if not loop.last %},{% endif %}

{% endfor %}
  FROM {{ source }} AS t
),
{% endif %}{{ cte }} AS (
  SELECT
    t.*{% if leaves %} EXCLUDE ({% for leaf in leaves %}{{ leaf.column }}{% if not loop.last %}, {% endif %}{% endfor %}){% endif %},
{% for score in scores %}
    -- votes for {{ score.label | comment }}
    {{ score.votes }} AS {{ score.column }}{% if not loop.last %},{% endif %}

{% endfor %}
  FROM {% if leaves %}{{ leaf_cte }}{% else %}{{ source }}{% endif %} AS t
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
