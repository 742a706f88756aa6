"""DuckDB, where the model was trained."""

from __future__ import annotations

from collections.abc import Sequence

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.types import BOOLEAN, VARCHAR, ColumnType
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.base import Dialect, without_jinja
from dpforest_duckdb.sql import Sql


class DuckDB(Dialect):
    """Functions are named in full: a macro of the user's database could have the short name."""

    name = "duckdb"
    title = "DuckDB"
    forms = ("select", "view", "table", "macro", "dbt", "dbt-schema")
    replaces = ("view", "table", "macro")
    excludes = True
    functions = "system.main."

    def number(self, digits: str) -> Sql:
        """Any number: a HUGEINT has 128 bits."""
        return Sql(digits)

    def timestamp(self, text: str) -> Sql:
        """A moment in the coarsest type that holds it, so that no column is cast to a finer one.

        Such a cast fails for the moments of a TIMESTAMP_S that a TIMESTAMP cannot hold.
        """
        digits = len(text.partition(".")[2].rstrip("0"))
        precision = "TIMESTAMP_S" if not digits else "TIMESTAMP_MS" if digits <= 3 else "TIMESTAMP"
        return Sql(f"{precision} {self.text(text)}")

    def type(self, kind: ColumnType) -> Sql:
        """The type as it is."""
        if not kind.usable:
            raise DpforestError("The target's type is not one that a model can have.")
        return without_jinja(kind.name) if self.jinja else Sql(kind.name)

    def target_type(self, kind: ColumnType) -> Sql | None:
        """An ENUM too: a prediction has exactly the target's type."""
        return None if kind in (VARCHAR, BOOLEAN) else self.type(kind)

    def input(self, attribute: Attribute, column: Sql) -> Sql:
        """The column itself: what `collated` adds is read where a test is, and costs nothing."""
        return column

    def collated(self, kind: ColumnType, column: Sql) -> Sql:
        """A column of a type, with text that compares byte by byte.

        A column or the user's setting may ignore case; the setting also holds for an ENUM that is
        compared with text. The plan is the same with and without, of an ENUM too.
        """
        if kind.family != "text":
            return column
        text = column if kind == VARCHAR else f"CAST({column} AS VARCHAR)"
        return Sql(f'{text} COLLATE "binary"')

    def edge(self, attribute: Attribute, cell: int) -> Sql:
        """The upper edge of a bin, whole in a DECIMAL column if it is whole."""
        edge = attribute.edges[cell]
        dated = attribute.family in ("date", "timestamp")
        return self.literal(attribute.text(edge) if dated else edge, attribute.family)

    def is_any(self, attribute: Attribute, column: Sql, cells: Sequence[int]) -> Sql:
        """True where a value is one of several categories.

        Lists of more than four are cut up: DuckDB plans a join for each, and takes minutes over a
        forest of them.
        """
        column = self.collated(attribute.type, column)
        listed = self.listed(attribute, cells)
        if len(listed) <= 4:
            return super().is_any(attribute, column, cells)
        parts = [f"{column} IN ({', '.join(listed[i : i + 4])})" for i in range(0, len(listed), 4)]
        return Sql(f"({' OR '.join(parts)})")


DUCKDB = DuckDB()  # writes SQL, not text of a dbt model
