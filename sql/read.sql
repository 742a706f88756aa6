-- Read rows that are in no table of a database, each column in the type that a run needs.
-- inputs: files, a DataFrame, or a query of the user's under a name of ours
-- outputs: a table of the rows, a view that reads them where they are, or the rows themselves
-- reads private rows: yes
{% if made %}
CREATE {% if copied %}TABLE{% else %}VIEW{% endif %} {{ made }} AS
{% endif %}
{% for part in parts %}
SELECT
{% for column in part.columns %}
  {{ column }}{{ loop | comma }}
{% endfor %}
FROM {{ part.rows }}
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
