-- Read the columns that a run uses, and a hash of the whole row.
-- inputs: a view of the private table
-- outputs: its rows
-- reads private rows: yes
SELECT
{% for column in columns %}
  {{ column }}{% if hashed or not loop.last %},{% endif %}

{% endfor %}
{% if hashed %}
  xxhash64({{ hashed }}) AS {{ row_hash }}
{% endif %}
FROM {{ source }}
