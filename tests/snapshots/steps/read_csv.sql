-- Read the records of CSV files as text, without the spaces around a value. A record that cannot be
-- read, or has too few fields, is left out, whichever columns are used.
-- inputs: CSV files with the same header
-- outputs: a row for each record; an empty value is NULL
-- reads private rows: yes
SELECT
  nullif(trim(column0), '') AS "colour",
  nullif(trim(column1), '') AS "size",
  nullif(trim(column2), '') AS "who",
  nullif(trim(column3), '') AS "label"
FROM read_csv(
  ['/rows.csv'],
  columns = {
    column0: 'VARCHAR',
    column1: 'VARCHAR',
    column2: 'VARCHAR',
    column3: 'VARCHAR'
  },
  auto_detect = false,
  header = true,
  delim = ',',
  quote = '"',
  escape = '"',
  new_line = '\n',
  strict_mode = false,
  ignore_errors = true,
  parallel = false,
  buffer_size = 67108864
)
WHERE hash(column0, column1, column2, column3) IS NOT NULL
