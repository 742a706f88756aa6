"""Where the rows are: an Engine runs the steps and returns counts, a Dialect writes their SQL."""

from dpforest_duckdb.engine.base import CodedRows, Engine, Splits, TableInfo

__all__ = ["CodedRows", "Engine", "Splits", "TableInfo"]
