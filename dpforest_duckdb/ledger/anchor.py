"""A base table, and what its account needs from an engine: its place, and a note stored with it.

The note has the id of the table's budget, the head of the ledger's hash chain and the cap, so that
they follow the table through renames and copies of its database.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.errors import BudgetError


@dataclass(frozen=True)
class TableInfo:
    """What the catalogue has on a base table: its full name and its columns' types. Public.

    `computed` are the columns that the database computes whenever they are read. `categories`
    are those that values of a DataFrame's columns are compared with; none for a column of numbers.
    """

    catalog: str
    schema: str
    name: str
    columns: dict[str, ColumnType]
    comment: str = ""
    computed: frozenset[str] = frozenset()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """Database, schema and name, which identify the table."""
        return self.catalog, self.schema, self.name

    @property
    def display(self) -> str:
        return self.name if self.schema == "main" else f"{self.schema}.{self.name}"

    @property
    def reference(self) -> str:
        """The name as `Engine.table` reads it: a part with a dot or a quote is quoted."""
        return quoted_name(*([self.name] if self.schema == "main" else [self.schema, self.name]))


def quoted_name(*parts: str) -> str:
    """A name of several parts, each in quotes if it has a dot or a quote: no two names are equal.

    >>> quoted_name("a.b", "c"), quoted_name("a", "b.c")
    ('"a.b".c', 'a."b.c"')
    """
    return ".".join(
        '"' + part.replace('"', '""') + '"' if set(part) & {".", '"'} else part for part in parts
    )


@dataclass(frozen=True)
class Home:
    """The database of a table: its file ("" if it has none), and whether it can be written.

    `name` identifies a database without a file among those of an engine.
    """

    path: str
    read_only: bool
    name: str = ""


class UnanchoredError(BudgetError):
    """Nothing can be stored with a table, so its budget is in the ledger alone."""


class BudgetNote(Protocol):
    """The note stored with a table, within one transaction of its database.

    `exclusive` says that no other process can write the note at the same time.
    """

    exclusive: bool

    def read(self) -> TableInfo:
        """The table as it is now, with its note. Raises `DpforestError` if it no longer exists."""

    def write(self, note: str) -> None:
        """Replace the note. Raises `BudgetError`, before anything is debited, if it cannot be
        written: `UnanchoredError` if it never can.
        """

    def commit(self) -> None:
        """Commit what was written, before the end of the block."""


class Anchor(Protocol):
    """An engine, as the account of a table knows it."""

    def home(self, table: TableInfo) -> Home:
        """The place of a table."""

    def tables(self, catalog: str) -> list[TableInfo]:
        """The base tables of a database, with their notes."""

    def budget_note(self, table: TableInfo) -> AbstractContextManager[BudgetNote]:
        """The note of a table; changes are committed at the end, or rolled back after an error."""
