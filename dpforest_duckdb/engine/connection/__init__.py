"""A connection to DuckDB: how it is opened, how it runs statements, and how much space it has."""
