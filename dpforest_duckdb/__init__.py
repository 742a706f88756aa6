"""Differentially private decision forests, trained inside DuckDB and scored with plain SQL."""

__version__ = "0.1.0"
