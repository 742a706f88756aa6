"""PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql


class Postgres(Dialect):
    """PostgreSQL computes a CTE again for every use of its columns unless it is MATERIALIZED."""

    name = "postgres"
    title = "PostgreSQL"
    longest_name = 63
    name_in_bytes = True
    most_columns = 1664
    cte = Sql("AS MATERIALIZED")
    advice = "Faster after SET jit = off: PostgreSQL would compile these long expressions first."
    double = "DOUBLE PRECISION"
    types: ClassVar[Mapping[str, str]] = {
        "VARCHAR": "TEXT",
        "DECIMAL": "NUMERIC({0}, {1})",
        "WIDE": "NUMERIC(38, 0)",
        "FLOAT": "REAL",
    }

    def quoted(self, value: str) -> Sql:
        """As E'…' if there is a backslash, so standard_conforming_strings does not matter."""
        text = value.replace("'", "''")
        return Sql("E'" + text.replace("\\", "\\\\") + "'" if "\\" in text else f"'{text}'")

    def bytewise(self, column: Sql) -> Sql:
        return Sql(f'CAST({column} AS TEXT) COLLATE "C"')

    def is_nan(self, column: Sql) -> Sql:
        """NaN equals itself in PostgreSQL. The cast lets a column of whole numbers be compared."""
        return Sql(f"{column} = CAST('NaN' AS DOUBLE PRECISION)")

    def missing(self, attribute: Attribute, column: Sql) -> Sql:
        """NaN of a NUMERIC too, which is compared with edges as double precision."""
        if attribute.family == "decimal" and attribute.kind == "numeric":
            return Sql(f"({column} IS NULL OR {self.is_nan(column)})")
        return super().missing(attribute, column)
