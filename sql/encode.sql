-- Encode the rows once into small integers; rows without a known class are left out.
-- inputs: the private table
-- outputs: a TEMP table of codes and node_class = node * classes + class
-- reads private rows: yes
CREATE TEMP TABLE {{ codes }} AS
WITH coded AS (
  SELECT
{% for word in words %}
    {{ word.value }} AS {{ word.name }},
{% endfor %}
{% if unit %}
    {{ unit.canonical }} AS "unit",
{% elif parts > 1 and not bootstrap %}
    CAST(hash({{ row }}, CAST($salt AS UBIGINT)) % {{ parts }} AS UINTEGER) AS "part",
{% endif %}
    CAST({{ class }} AS {{ class_type }}) AS "class"
  FROM {{ source | indent(2) }} AS t
)
{% if unit %}
, ordered AS (
  -- one order of all rows: DuckDB writes it to disk as needed, even if a unit has most of the rows.
  -- The hash is of the unit too: units with the same rows must not all use the same of them.
  -- Ties in the hash are broken by class and codes, so rows that still tie are identical. Without
  -- this, the order of two rows of a unit with the same hash, and so which of them is used, could
  -- depend on the rows of other units
  SELECT
    *,
    lag("unit", {{ unit.rows }}) OVER (
      ORDER BY "unit", hash(CAST($salt AS UBIGINT), "unit", {% for word in words %}{{ word.name }}, {% endfor %}"class"),
        "class"{% for word in words %}, {{ word.name }}{% endfor %}

    ) AS "before"
  FROM coded
  WHERE "class" IS NOT NULL AND "unit" IS NOT NULL
)
{% endif %}
, kept AS (
{% if unit %}
  -- a row is left out if as many rows of its unit come before it as are used
  SELECT
    *{% if parts > 1 and not bootstrap %},
    -- one tree per unit: equal units share a key even where the column compares without case
    CAST(hash(min({{ unit.key }}) OVER (PARTITION BY "unit"), CAST($salt AS UBIGINT))
      % {{ parts }} AS UINTEGER) AS "part"{% endif %}

  FROM ordered
  WHERE "before" IS DISTINCT FROM "unit"
{% else %}
  SELECT * FROM coded
  WHERE "class" IS NOT NULL
{% endif %}
)
{% if first_phase_labels %}
, labelled AS (
  -- what released trees say of a row, by its codes
  SELECT
    *,
{% for first_phase_label in first_phase_labels %}
    {{ first_phase_label.value }} AS {{ first_phase_label.name }}{{ loop | comma }}
{% endfor %}
  FROM kept
)
{% endif %}
{% if bootstrap %}
{% if first_phase_labels %}
, weighed AS (
  -- a row counts once for each tree that is wrong about it; all rows once if no tree is wrong
  SELECT *, CASE WHEN MAX({{ wrong }}) OVER () = 0 THEN 1 ELSE {{ wrong }} END AS "times"
  FROM labelled
)
{% endif %}
, numbered AS (
  SELECT *, row_number() OVER () - 1 AS "number"
  FROM {% if first_phase_labels %}weighed, range("times") AS times("time"){% else %}kept{% endif %}

)
, drawn AS (
  -- for each tree as many draws as there are rows, with replacement
  SELECT n.*, d."part"
  FROM (
    SELECT
      "part",
      hash("part", "draw", CAST($salt AS UBIGINT))
        % (SELECT nullif(COUNT(*), 0) FROM numbered) AS "number"
    FROM (SELECT row_number() OVER () - 1 AS "draw" FROM kept), range({{ parts }}) AS parts("part")
  ) AS d
  JOIN numbered AS n ON n."number" = d."number"
)
{% endif %}
SELECT
{% for word in words %}
  {{ word.name }},
{% endfor %}
  CAST({% if parts > 1 %}"part" * {{ classes }} + {% endif %}"class" AS {{ node_class_type }}) AS {{ node_class }}
{% if bootstrap %}
FROM drawn
{% elif first_phase_labels %}
FROM labelled, range(CASE WHEN 2 * ({{ wrong }}) >= {{ first_phase_labels | length }} THEN {{ misclassified_weight }} ELSE 1 END)
{% else %}
FROM kept
{% endif %}
{% if parts > 1 %}
-- rows of a tree side by side: their groups fit into the processor's caches
ORDER BY {{ node_class }}
{% endif %}
