"""Rows as integer codes in a TEMP table of DuckDB: coded, moved from node to node, and counted."""
