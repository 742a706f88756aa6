-- Read rows that are in no table of a database, each column in the type that a run needs.
-- inputs: files, a DataFrame, or a query of the user's under a name of ours
-- outputs: a table of the rows, a view that reads them where they are, or the rows themselves
-- reads private rows: yes
CREATE TABLE "memory"."main"."rows" AS
SELECT
  "colour" AS "colour",
  TRY_CAST("size" AS INTEGER) AS "size",
  TRY_CAST("who" AS INTEGER) AS "who",
  "label" AS "label"
FROM (
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
)
