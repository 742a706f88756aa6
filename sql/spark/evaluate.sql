-- Count how often a model is right, by class (of two) and by probability or its bin.
-- inputs: the scored rows of a table; outputs: one row per combination that occurs
-- reads private rows: yes
SELECT `class`, `right`, `value`, COUNT(*) AS `rows`
FROM (
  SELECT
    *{% if unit %},
    row_number() OVER (
      PARTITION BY `unit` ORDER BY xxhash64(:salt, `class`, `right`, `value`), `class`, `right`, `value`
    ) AS `position`{% endif %}

  FROM (
    SELECT
{% if unit %}
      {{ unit.canonical }} AS `unit`,
{% endif %}
{# the class itself matters to the AUC of two classes only #}
      {% if binary %}{{ class }}{% else %}0{% endif %} AS `class`,
      CAST({{ class }} = {{ predicted }} AS INT) AS `right`,
      {% if bins %}CAST(greatest(ceil({{ value }} * {{ bins }}), 1) - 1 AS INT){% else %}{{ value }}{% endif %} AS `value`
    FROM (
{{ scored }}
    ) AS s
    WHERE {{ class }} IS NOT NULL
  ) AS labelled
{% if unit %}
  WHERE `unit` IS NOT NULL
{% endif %}
) AS bounded
{% if unit %}
WHERE `position` <= {{ unit.rows }}
{% endif %}
GROUP BY `class`, `right`, `value`
