"""Engines whose SQL the tests only parse, with sqlglot; no test executes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from dpforest_duckdb.domain.types import ColumnType, Family
from dpforest_duckdb.scoring.dialects.base import Dialect, Form
from dpforest_duckdb.sql import Sql


class BigQuery(Dialect):
    name = "bigquery"
    title = "BigQuery"
    replaces = ("view", "table")
    quotes = ("`", "`")
    longest_name = 300
    forbidden = '!"$()*,./;?@[\\]^`{}~'
    most_bytes = 1_000_000
    double = "FLOAT64"
    types: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT"), "INT64"),
        "VARCHAR": "STRING",
        "WIDE": "BIGNUMERIC",
        "TIMESTAMP": "DATETIME",
        "DECIMAL": "BIGNUMERIC",
    }

    def quoted(self, value: str) -> Sql:
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        return Sql("'" + text.replace("\r", "\\r").replace("\n", "\\n") + "'")

    def timestamp(self, text: str) -> Sql:
        return Sql(f"DATETIME {self.text(text)}")

    def bytewise(self, column: Sql) -> Sql:
        return Sql(f"COLLATE(CAST({column} AS STRING), '')")

    def is_nan(self, column: Sql) -> Sql:
        return Sql(f"IS_NAN({column})")


class Snowflake(Dialect):
    name = "snowflake"
    title = "Snowflake"
    replaces = ("view", "table")
    longest_name = 255
    most_bytes = 1_000_000
    types: ClassVar[Mapping[str, str]] = {"TIMESTAMP": "TIMESTAMP_NTZ"}

    def quoted(self, value: str) -> Sql:
        return Sql("'" + value.replace("\\", "\\\\").replace("'", "''") + "'")

    def bytewise(self, column: Sql) -> Sql:
        return Sql(f"COLLATE(CAST({column} AS VARCHAR), 'utf8')")

    def is_nan(self, column: Sql) -> Sql:
        """NaN equals itself in Snowflake."""
        return Sql(f"{column} = CAST('NaN' AS DOUBLE)")


class _SpacesIgnored(Dialect):
    """Spaces at the end do not count in comparisons, so both sides get a full stop there."""

    def category(self, value: str, family: Family) -> Sql:
        return super().category(f"{value}." if family == "text" else value, family)


class Redshift(_SpacesIgnored):
    name = "redshift"
    title = "Redshift"
    longest_name = 127
    name_in_bytes = True
    most_bytes = 16_000_000
    most_columns = 1600
    double = "DOUBLE PRECISION"
    types: ClassVar[Mapping[str, str]] = {"VARCHAR": "VARCHAR(65535)", "FLOAT": "REAL"}

    def quoted(self, value: str) -> Sql:
        """With CHR(92) for a backslash, which escapes in some clients and not in others."""
        parts = [Sql("'" + part.replace("'", "''") + "'") for part in value.split("\\")]
        return parts[0] if len(parts) == 1 else Sql(f"({' || CHR(92) || '.join(parts)})")

    def bytewise(self, column: Sql) -> Sql:
        return Sql(f"COLLATE(CAST({column} AS VARCHAR(65535)) || '.', 'case_sensitive')")

    def is_nan(self, column: Sql) -> Sql:
        return Sql(f"{column} = CAST('NaN' AS DOUBLE PRECISION)")


class Trino(Dialect):
    name = "trino"
    title = "Trino"
    most_bytes = 1_000_000
    types: ClassVar[Mapping[str, str]] = {"FLOAT": "REAL"}

    def is_nan(self, column: Sql) -> Sql:
        return Sql(f"is_nan({column})")


class TSQL(_SpacesIgnored):
    name = "tsql"
    title = "SQL Server"
    quotes = ("[", "]")
    longest_name = 128
    most_columns = 4096
    most_nested = 10
    advice = "For SQL Server 2022 or later, which has GREATEST."
    double = "FLOAT"
    types: ClassVar[Mapping[str, str]] = {
        "VARCHAR": "NVARCHAR(MAX)",
        "BOOLEAN": "BIT",
        "TIMESTAMP": "DATETIME2",
        "FLOAT": "REAL",
    }

    def quoted(self, value: str) -> Sql:
        """In parts if a line ends with a backslash, which would join it with the next one."""
        lines = value.replace("'", "''").split("\\\n")
        return Sql(" + ".join(f"N'{line}'" for line in _with_ends(lines)))

    def concatenated(self, parts: Sequence[Sql]) -> Sql:
        return Sql(f"({' + '.join(parts)})")

    def boolean(self, value: bool) -> Sql:
        return Sql(f"CAST({int(value)} AS BIT)")

    def date(self, text: str) -> Sql:
        return Sql(f"CAST({self.text(text)} AS DATE)")

    def timestamp(self, text: str) -> Sql:
        return Sql(f"CAST({self.text(text)} AS DATETIME2)")

    def target_type(self, kind: ColumnType) -> Sql | None:
        return None if kind.family == "boolean" else super().target_type(kind)

    def bytewise(self, column: Sql) -> Sql:
        return Sql(f"(CAST({column} AS NVARCHAR(MAX)) + N'.') COLLATE Latin1_General_100_BIN2")

    def is_nan(self, column: Sql) -> None:
        return None

    def create(self, form: Form, name: Sql, *, replace: bool = False) -> Sql:
        if form == "table":
            return Sql("")
        head = super().create(form, name, replace=replace)
        return Sql(head.replace("CREATE OR REPLACE", "CREATE OR ALTER", 1))

    def into(self, form: Form, name: Sql) -> Sql:
        return Sql(f"INTO {name}\n") if form == "table" else Sql("")


def _with_ends(lines: Sequence[str]) -> list[str]:
    """Lines that were split after a backslash, with the backslash and the line end back."""
    first = lines[0] + ("\\" if len(lines) > 1 else "")
    middle = [f"\n{line}\\" for line in lines[1:-1]]
    return [first, *middle, *([f"\n{lines[-1]}"] if len(lines) > 1 else [])]
