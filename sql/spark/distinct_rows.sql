-- Count equal coded rows: all of them, or about one in {{ one_in }} of the different ones.
-- inputs: the coded rows
-- outputs: codes, class and a number of rows
-- reads private rows: yes
SELECT
{% for word in words %}
  {{ word }},
{% endfor %}
  `class`,
  COUNT(*) AS `rows`
FROM {{ codes }}
{% if one_in > 1 %}
WHERE pmod(xxhash64({{ words | join(", ") }}), {{ one_in }}) = 0
{% endif %}
GROUP BY {% for word in words %}{{ word }}, {% endfor %}`class`
