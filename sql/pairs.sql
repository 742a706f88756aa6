-- Copy the rows whose pairs of values the next statement counts: the nodes are the bins of one
-- attribute. DuckDB knows the range of a stored node_class, so each GROUP BY takes half of the time.
-- inputs: the TEMP table of codes
-- outputs: a TEMP table of codes and node_class = bin * classes + class
-- reads private rows: yes
CREATE TEMP TABLE {{ made }} AS
SELECT {% for word in words %}{{ word }}, {% endfor %}{{ node_class.value }} AS {{ node_class.name }}
FROM {{ codes }}
