-- Read the records of CSV files as text, without the spaces around a value. A record that cannot be
-- read, or has too few fields, is left out, whichever columns are used.
-- inputs: CSV files with the same header
-- outputs: a row for each record; an empty value is NULL
-- reads private rows: yes
SELECT
{% for column in columns %}
  nullif(trim({{ column.value }}), '') AS {{ column.name }}{{ loop | comma }}
{% endfor %}
FROM read_csv(
  [{{ files | join(", ") }}],
  columns = {
{% for column in columns %}
    {{ column.value }}: 'VARCHAR'{{ loop | comma }}
{% endfor %}
  },
  auto_detect = false,
  header = true,
  delim = {{ delimiter }},
  quote = '"',
  escape = '"',
  new_line = '\n',
  strict_mode = false,
  ignore_errors = true,
  parallel = false,
  buffer_size = {{ buffer_size }}
)
WHERE hash({{ columns | map(attribute="value") | join(", ") }}) IS NOT NULL
