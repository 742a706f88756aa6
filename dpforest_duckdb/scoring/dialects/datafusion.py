"""Apache DataFusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dpforest_duckdb.errors import DpforestError
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

    def timestamp(self, text: str) -> Sql:
        """A moment in 64 bits of nanoseconds. Raises `DpforestError` for one that has no room."""
        if not "1678" <= text[:4] < "2262":
            raise DpforestError(
                "The model compares with a time before 1678 or after 2261, which DataFusion cannot "
                "hold: score it in DuckDB."
            )
        return super().timestamp(text)

    def decimal(self, digits: str) -> Sql:
        number = super().decimal(digits)
        scale = len(digits.partition(".")[2])
        width = max(len(digits.strip("-").replace(".", "").lstrip("0")), scale)
        return Sql(f"CAST('{number}' AS DECIMAL({width}, {scale}))") if scale else number
