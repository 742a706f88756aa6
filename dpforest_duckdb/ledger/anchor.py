"""What the account of a table asks of an engine: where the table lies, and a note kept with it.

The note carries the id of the table's budget, the head of the ledger's hash chain and the cap, so
that they follow the table through renames and copies of its database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dpforest_duckdb.table import TableInfo


@dataclass(frozen=True)
class Home:
    """The database that a table lies in: its file, "" where it has none, and who may write it."""

    path: str
    read_only: bool


class Anchor(Protocol):
    """An engine, as the account of a table knows it."""

    def home(self, table: TableInfo) -> Home:
        """Where a table lies."""

    def write_note(self, table: TableInfo, note: str) -> None:
        """Replace the comment of a table."""
