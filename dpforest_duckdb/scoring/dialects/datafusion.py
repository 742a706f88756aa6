"""Apache DataFusion."""

from __future__ import annotations

from dpforest_duckdb.scoring.dialects.base import Dialect


class DataFusion(Dialect):
    name = "datafusion"
    title = "DataFusion"
    forms = ("select", "view", "table")
    replaces = ("view", "table")
