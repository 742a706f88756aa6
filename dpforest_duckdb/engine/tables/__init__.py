"""DuckDB's tables: their catalogue, their rows at one moment, and the models beside them."""
