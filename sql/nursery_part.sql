-- Store the part of the Nursery table to train on, or the part to test on, with ENUM columns.
-- inputs: the Nursery table
-- outputs: a table of about three quarters of its rows, or of the others
-- reads private rows: no (the rows are published)
CREATE TABLE {{ table }} AS
SELECT
{% for column in columns %}
  {{ column }}{{ loop | comma }}
{% endfor %}
FROM {{ nursery }} AS n
-- the attributes are all different, and md5 is the same everywhere
WHERE md5_number_lower(concat_ws('|', {{ attributes }})) % 4 {% if test %}={% else %}<>{% endif %} 0
