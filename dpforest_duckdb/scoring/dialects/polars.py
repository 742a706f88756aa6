"""Polars' SQL."""

from __future__ import annotations

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql


class Polars(Dialect):
    """Polars rounds a literal to the width of a FLOAT column, so such a column is widened."""

    name = "polars"
    title = "Polars"
    executed = True
    forms = ("select", "table")

    def input(self, attribute: Attribute, column: Sql) -> Sql:
        if attribute.family == "float" and attribute.kind == "numeric":
            return self.as_double(column)
        return super().input(attribute, column)

    def is_nan(self, column: Sql) -> Sql:
        """NaN equals itself in Polars, which has no function for it in SQL."""
        return Sql(f"{column} = CAST('NaN' AS DOUBLE)")
