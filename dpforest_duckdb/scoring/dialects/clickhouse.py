"""ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.base import Dialect, Form
from dpforest_duckdb.sql import Sql

_TYPES = {
    "SMALLINT": "Int16",
    "INTEGER": "Int32",
    "BIGINT": "Int64",
    "WIDE": "Int128",
    "VARCHAR": "String",
    "DATE": "Date32",
    "TIMESTAMP": "DateTime64(6, 'UTC')",
    "DECIMAL": "Decimal({0}, {1})",
    "FLOAT": "Float32",
}


class ClickHouse(Dialect):
    """Names and text have backslash escapes, and dates lie between 1900 and 2299."""

    name = "clickhouse"
    title = "ClickHouse"
    replaces = ("view", "table")
    quotes = ("`", "`")
    most_bytes = 262_144  # max_query_size
    double = "Float64"
    types: ClassVar[Mapping[str, str]] = _TYPES

    def escaped_name(self, name: str) -> str:
        return name.replace("\\", "\\\\").replace("`", "\\`")

    def quoted(self, value: str) -> Sql:
        return Sql("'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'")

    def date(self, text: str) -> Sql:
        self._check_year(text)
        return Sql(f"toDate32({self.text(text)})")

    def timestamp(self, text: str) -> Sql:
        self._check_year(text)
        return Sql(f"toDateTime64({self.text(text)}, 6, 'UTC')")

    def decimal(self, digits: str) -> Sql:
        """From text: 1.15 would be a double, which a CAST to a Decimal cuts off to 1.14."""
        scale = len(digits.partition(".")[2])
        return Sql(f"toDecimal128('{super().decimal(digits)}', {scale})")

    def label(self, value: str, kind: ColumnType) -> Sql:
        """A decimal with as many digits as the target has: a CASE of two fails for two scales."""
        if kind.family != "decimal" or not kind.scale:
            return super().label(value, kind)
        whole, _, fraction = value.partition(".")
        return self.decimal(f"{whole}.{fraction.ljust(kind.scale, '0')}")

    def _check_year(self, text: str) -> None:
        if not "1900" <= text[:4] < "2299":
            raise DpforestError(
                "The model compares with a date before 1900 or after 2298, which ClickHouse cannot "
                "hold: score it in DuckDB."
            )

    def bytewise(self, column: Sql) -> Sql:
        """A String: an Enum fails on a category that it does not list."""
        return Sql(f"toString({column})")

    def is_nan(self, column: Sql) -> Sql:
        return Sql(f"isNaN({column})")

    def as_double(self, value: str) -> Sql:
        return Sql(f"toFloat64({value})")

    def as_integer(self, value: str) -> Sql:
        return Sql(f"toInt64({value})")

    def votes(self, case: Sql) -> Sql:
        """As 64 bits always: literals of several widths make slow sums."""
        return self.as_integer(case)

    def create(self, form: Form, name: Sql, *, replace: bool = False) -> Sql:
        head = super().create(form, name, replace=replace)
        if form != "table":
            return head
        return Sql(head.replace(" AS\n", " ENGINE = MergeTree ORDER BY tuple() AS\n"))
