"""What the account of a table needs from an engine: its place, and a comment stored with it.

The comment carries a note (`note.py`), after the user's own text: the id of the table's budget, the
head of the ledger's hash chain and the cap. So they follow the table through renames and copies of
its database.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.errors import BudgetError


@dataclass(frozen=True)
class Home:
    """A database: its file ("" if it has none), and whether it can be written.

    `name` identifies a database without a file among those of an engine.
    """

    path: str
    read_only: bool
    name: str = ""


class UnanchoredError(BudgetError):
    """Nothing can be stored with a table, so its budget is in the ledger alone."""


class StoredComment(Protocol):
    """The comment stored with a table, within one transaction of its database.

    `exclusive` says that no other process can write it at the same time.
    """

    exclusive: bool

    def read(self) -> TableInfo:
        """The table and its comment now. Raises `DpforestError` if it no longer exists."""

    def write(self, text: str) -> None:
        """Replace all of the comment. Raises `BudgetError`, before anything is debited, if it
        cannot be written: `UnanchoredError` if it never can.
        """

    def commit(self) -> None:
        """Commit what was written, before the end of the block."""


class Anchor(Protocol):
    """An engine, as the account of a table knows it."""

    def home(self, catalog: str) -> Home:
        """The place of a database."""

    def tables(self, catalog: str) -> list[TableInfo]:
        """The base tables of a database, with their comments."""

    def stored_comment(self, table: TableInfo) -> AbstractContextManager[StoredComment]:
        """A table's comment; changes are committed at the end, or rolled back after an error."""
