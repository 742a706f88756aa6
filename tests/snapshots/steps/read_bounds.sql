-- Read the least and the largest number of columns, and their different values as text.
-- inputs: the rows; each column, it as a number or date, and what of it must be finite
-- outputs: one row; all_numbers of a column says if each of its values is a number
-- reads private rows: yes
SELECT
  {
    'low': min("size") FILTER (WHERE isfinite(CAST("size" AS DOUBLE))),
    'high': max("size") FILTER (WHERE isfinite(CAST("size" AS DOUBLE))),
    'all_numbers': count("size") = count("size"),
    'values': list(DISTINCT CAST("size" AS VARCHAR)) FILTER (WHERE "size" IS NOT NULL)
  },
  {
    'low': min(TRY_CAST("colour" AS DOUBLE)) FILTER (WHERE isfinite(CAST(TRY_CAST("colour" AS DOUBLE) AS DOUBLE))),
    'high': max(TRY_CAST("colour" AS DOUBLE)) FILTER (WHERE isfinite(CAST(TRY_CAST("colour" AS DOUBLE) AS DOUBLE))),
    'all_numbers': count("colour") = count(TRY_CAST("colour" AS DOUBLE)),
    'values': list(DISTINCT CAST("colour" AS VARCHAR)) FILTER (WHERE "colour" IS NOT NULL)
  }
FROM "dpforest frame"
