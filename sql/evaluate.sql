-- Count how often a model is right, by class and by probability, or by its bin.
-- inputs: the scored rows of a table
-- outputs: one row per combination that occurs
-- reads private rows: yes
SELECT
  "class",
  "right",
{% if edges %}
{% for edge in edges %}
  {%+ if not loop.first %}+ {% endif %}CAST("value" > {{ edge }} AS UTINYINT){% if loop.last %} AS "bin",{% endif %}

{% endfor %}
{% else %}
  "value",
{% endif %}
  COUNT(*) AS "rows"
FROM (
  SELECT
    *{% if unit %},
    lag("unit", {{ unit.rows }}) OVER (
      ORDER BY "unit", hash(CAST($salt AS UBIGINT), "unit", "class", "right", "value"),
        "class", "right", "value"
    ) AS "before"{% endif %}

  FROM (
    SELECT
{% if unit %}
      {{ unit.canonical }} AS "unit",
{% endif %}
{# in a grid, each of several classes would need noise of its own #}
{% if edges %}
      {%+ if binary %}{{ label }}{% else %}0{% endif %} AS "class",
      CAST({{ label }} = {{ predicted }} AS UTINYINT) AS "right",
      {{ value }} AS "value"
{% else %}
      -- rows of no class are class -1
      COALESCE({{ label }}, -1) AS "class",
      COALESCE(CAST({{ label }} = {{ predicted }} AS UTINYINT), 0) AS "right",
      COALESCE({{ value }}, 0) AS "value"
{% endif %}
    FROM {{ scored | indent(4) }} AS s
{% if edges %}
    WHERE {{ label }} IS NOT NULL
{% endif %}
  ) AS labelled
{% if unit %}
  WHERE "unit" IS NOT NULL
{% endif %}
) AS ordered
{% if unit %}
-- a row is left out if as many rows of its unit come before it as are used
WHERE "before" IS DISTINCT FROM "unit"
{% endif %}
GROUP BY "class", "right", {% if edges %}"bin"{% else %}"value"{% endif %}
