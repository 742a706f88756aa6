"""Polars' SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql


class Polars(Dialect):
    """Polars rounds a literal to the width of a FLOAT column, so such a column is widened."""

    name = "polars"
    title = "Polars"
    forms = ("select", "table")
    replaces = ()
    most_nested = 42  # the parser recurses 50 times
    nested_by_sum = 2
    types: ClassVar[Mapping[str, str]] = {"FLOAT": "REAL"}

    def check_name(self, name: str) -> None:
        super().check_name(name)
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise DpforestError(
                f'The name "{name}" means several columns in Polars, even between quotes: '
                "rename the column or class, or write another name."
            )

    def input(self, attribute: Attribute, column: Sql) -> Sql:
        wide = self.as_double(column) if attribute.family == "float" else column
        return super().input(attribute, wide)

    def is_nan(self, column: Sql) -> Sql:
        """NaN equals itself in Polars, which has no function for it in SQL."""
        return Sql(f"{column} = CAST('NaN' AS DOUBLE)")
