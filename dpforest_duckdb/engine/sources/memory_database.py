"""A DuckDB database in memory, through which files and DataFrames are read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.engine.connection.connect import MEMORY, open_database
from dpforest_duckdb.engine.connection.statements import Statements, current_settings
from dpforest_duckdb.engine.sources.engine import ReadableRows
from dpforest_duckdb.engine.tables.snapshot import new_cursor
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.sql import Sql, render


class DatabaseOpener(Protocol):
    """Gives a database in memory to read files and DataFrames in."""

    def opened(self, files: Sequence[Path] = ()) -> AbstractContextManager[MemoryDatabase]:
        """A database that can read these files."""


@dataclass(frozen=True)
class NewDatabase:
    """Opens a new database each time, with the user's threads, memory and temporary folder.

    `out` is a file that it may write.
    """

    user: duckdb.DuckDBPyConnection
    trace: Trace | None = None
    out: Path | None = None

    @contextlib.contextmanager
    def opened(self, files: Sequence[Path] = ()) -> Iterator[MemoryDatabase]:
        """An empty database that can reach these files and no others; gone at the end."""
        settings = current_settings("threads", "memory_limit", "temp_directory")
        threads, memory, folder = Statements(self.user).run(settings)[0]
        with open_database(
            MEMORY,
            threads=threads,
            # DuckDB shows units that it does not read; so much memory is no limit
            memory_limit="none" if memory.endswith(("PiB", "EiB")) else memory,
            temp_dir=folder if folder and Path(folder).is_dir() else None,
            files=[*files, *([self.out] if self.out else [])],
        ) as connection:
            yield MemoryDatabase(connection, self.trace)


@dataclass(frozen=True)
class GivenDatabase:
    """Gives a database that is open already; the caller closes it."""

    memory: MemoryDatabase

    @contextlib.contextmanager
    def opened(self, files: Sequence[Path] = ()) -> Iterator[MemoryDatabase]:
        yield self.memory


@dataclass(frozen=True)
class Part:
    """Columns of some rows to read, and the rows to read them from."""

    columns: Sequence[Sql]
    rows: Sql


class MemoryDatabase(Statements):
    """An open database in memory."""

    def opened(self, table: TableInfo, parts: Sequence[Part], *, copied: bool) -> ReadableRows:
        """Rows under the name of a table, once they are filled in: see `create`."""
        return ReadableRows(
            self, new_cursor(self), lambda: self.create(table, parts, copied=copied)
        )

    def create(self, table: TableInfo, parts: Sequence[Part], *, copied: bool) -> None:
        """Give rows the name of a table: a copy of them, or a view."""
        made = DUCKDB.ident(*table.key)
        self.run(render("read", made=made, copied=copied, parts=parts), step="read")
