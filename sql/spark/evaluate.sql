-- Count how often a model is right, by class and by probability, or by its bin.
-- inputs: the scored rows of a table
-- outputs: one row per combination that occurs
-- reads private rows: yes
SELECT
  `class`,
  `right`,
{% if edges %}
{% for edge in edges %}
  {%+ if not loop.first %}+ {% endif %}CAST(`value` > {{ edge }} AS INT){% if loop.last %} AS `bin`,{% endif %}

{% endfor %}
{% else %}
  `value`,
{% endif %}
  COUNT(*) AS `rows`
FROM (
  SELECT
    *{% if unit %},
    row_number() OVER (
      PARTITION BY `unit` ORDER BY xxhash64(:salt, `unit`, `class`, `right`, `value`), `class`, `right`, `value`
    ) AS `position`{% endif %}

  FROM (
    SELECT
{% if unit %}
      {{ unit.canonical }} AS `unit`,
{% endif %}
{# in a grid, each of several classes would need noise of its own #}
{% if edges %}
      {%+ if binary %}{{ label }}{% else %}0{% endif %} AS `class`,
      CAST({{ label }} = {{ predicted }} AS INT) AS `right`,
      {{ value }} AS `value`
{% else %}
      -- rows of no class are class -1
      COALESCE({{ label }}, -1) AS `class`,
      COALESCE(CAST({{ label }} = {{ predicted }} AS INT), 0) AS `right`,
      COALESCE({{ value }}, 0) AS `value`
{% endif %}
    FROM {{ scored | indent(4) }} AS s
{% if edges %}
    WHERE {{ label }} IS NOT NULL
{% endif %}
  ) AS labelled
{% if unit %}
  WHERE `unit` IS NOT NULL
{% endif %}
) AS bounded
{% if unit %}
WHERE `position` <= {{ unit.rows }}
{% endif %}
GROUP BY `class`, `right`, {% if edges %}`bin`{% else %}`value`{% endif %}
