-- Add the votes of trees to the scores of every row (log-odds in millionths).
-- With one score, a tree's vote is a CASE over the cells of attributes, or a constant of its leaf if
-- an earlier statement stored the leaf. With several scores, the constants of leaves have the votes
-- for several classes in one number (see dpforest_duckdb/engine/coded_rows/packed_votes.py). The
-- leaves of large trees that are summed next are stored. They are found by a CASE, with look-ups for
-- the lower levels of a complete tree, or by bit sets in trees that split by few attributes (see
-- lower_levels.py and bit_sets.py in dpforest_duckdb/engine/coded_rows/).
-- inputs: the TEMP table of codes, the trees
-- outputs: codes and scores, as a new table or for a statement that reads them at once
-- reads private rows: yes
{% if made %}
CREATE TEMP TABLE {{ made }} AS
{% endif %}
WITH layer0 AS (
  SELECT * FROM {{ codes }}
)
{% include "parts/layers.sql" %}
SELECT
{% for column in columns %}
  {{ column }},
{% endfor %}
{% for score in scores %}
  {%+ if scored %}{{ score }}{% else %}CAST(0 AS BIGINT){% endif %}{% for term in terms[loop.index0] %} + {{ term }}{% endfor %} AS {{ score }}{% if not loop.last or leaves %},{% endif %}

{% endfor %}
{% for leaf in leaves %}
  {{ leaf.value }} AS {{ leaf.name }}{{ loop | comma }}
{% endfor %}
FROM layer{{ layers | length }}
