"""Apache DataFusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql


class DataFusion(Dialect):
    """A number with a point is a double, which equals few decimals: it is cast from text."""

    name = "datafusion"
    title = "DataFusion"
    forms = ("select", "view", "table")
    replaces = ("view", "table")
    most_nested = 42  # the parser recurses 50 times
    nested_by_sum = 2
    types: ClassVar[Mapping[str, str]] = {"FLOAT": "REAL"}

    def decimal(self, digits: str) -> Sql:
        number = super().decimal(digits)
        scale = len(digits.partition(".")[2])
        width = max(len(digits.strip("-").replace(".", "").lstrip("0")), scale)
        return Sql(f"CAST('{number}' AS DECIMAL({width}, {scale}))") if scale else number
