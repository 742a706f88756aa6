-- Encode the rows once into small integers; rows without a known class are left out.
-- inputs: the private table; outputs: a TEMP table of codes, the class and the node of each row
-- reads private rows: yes
CREATE TEMP TABLE {{ codes }} AS
WITH coded AS (
  SELECT
{% for word in words %}
    {{ word.code }} AS {{ word.column }},
{% endfor %}
{% if unit %}
    {{ unit.canonical }} AS "unit",
{% elif parts > 1 %}
    CAST(hash({{ row }}, CAST($salt AS UBIGINT)) % {{ parts }} AS UINTEGER) AS "part",
{% endif %}
    CAST({{ class }} AS {{ class_type }}) AS "class"
  FROM {{ source }} AS t
)
{% if unit %}
, bounded AS (
  SELECT
    *,
{% if parts > 1 %}
    -- one tree per unit: equal units share a key even where the column compares without case
    CAST(hash(min({{ unit.key }}) OVER (PARTITION BY "unit"), CAST($salt AS UBIGINT))
      % {{ parts }} AS UINTEGER) AS "part",
{% endif %}
    row_number() OVER (
      PARTITION BY "unit"
      ORDER BY hash({% for word in words %}{{ word.column }}, {% endfor %}"class",
        CAST($salt AS UBIGINT))
    ) AS "position"
  FROM coded
  WHERE "class" IS NOT NULL AND "unit" IS NOT NULL
)
{% endif %}
SELECT
{% for word in words %}
  {{ word.whole }},
{% endfor %}
{% for node in nodes %}
  CAST({% if parts > 1 %}"part"{% else %}{{ loop.index0 }}{% endif %} AS USMALLINT) AS {{ node }}{% if not loop.last %},{% endif %}

{% endfor %}
{% if unit %}
FROM bounded
WHERE "position" <= {{ unit.rows }}
{% else %}
FROM coded
WHERE "class" IS NOT NULL
{% endif %}
