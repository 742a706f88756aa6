"""SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.types import Family
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql

MOST = 100  # values that one max compares


class SQLite(Dialect):
    """SQLite has no dates and no NaN: dates are ISO text, and NaN is stored as NULL.

    It computes a CTE again for every use of its columns unless it is MATERIALIZED (3.35).
    """

    name = "sqlite"
    title = "SQLite"
    replaces = ()
    most_columns = 2000
    most_nested = 13  # the parser has a stack of 100 before SQLite 3.46
    nested_by_sum = 0.5
    cte = Sql("AS MATERIALIZED")
    double = "REAL"
    types: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT", "WIDE", "BOOLEAN"), "INTEGER"),
        **dict.fromkeys(("VARCHAR", "DATE", "TIMESTAMP"), "TEXT"),
        "DECIMAL": "REAL",
    }

    def check_name(self, name: str) -> None:
        """SQLite takes "true" and "false" for truth values where a subquery names a column."""
        if name.casefold() in ("true", "false"):
            raise DpforestError(
                f'SQLite does not keep the name "{name}" for a column of a subquery: rename it.'
            )
        super().check_name(name)

    def bytewise(self, column: Sql) -> Sql:
        return Sql(f"CAST({column} AS TEXT) COLLATE BINARY")

    def input(self, attribute: Attribute, column: Sql) -> Sql:
        """Timestamps without the zeros at their end, so that equal ones are equal text."""
        if attribute.family == "timestamp":
            return Sql(f"rtrim(replace({column}, 'T', ' '), '0.')")
        return super().input(attribute, column)

    def date(self, text: str) -> Sql:
        return self.text(text)

    def timestamp(self, text: str) -> Sql:
        return self.text(text)

    def category(self, value: str, family: Family) -> Sql:
        return (
            self.text(value.rstrip("0."))
            if family == "timestamp"
            else super().category(value, family)
        )

    def edge(self, attribute: Attribute, cell: int) -> Sql:
        if attribute.family == "timestamp":
            return self.text(attribute.text(attribute.edges[cell]).rstrip("0."))
        return super().edge(attribute, cell)

    def is_nan(self, column: Sql) -> None:
        return None

    def greatest(self, *values: str) -> Sql:
        """Of many values the greatest of some and of the others: max has at most 127 arguments."""
        if len(values) > MOST:
            return self.greatest(*values[: MOST - 1], self.greatest(*values[MOST - 1 :]))
        return Sql(f"max({', '.join(values)})")
