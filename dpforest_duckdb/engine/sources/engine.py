"""Rows that are in no table of a database: files, DataFrames and queries, as one more engine.

`read_types.py` says what their columns are read as.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

import duckdb

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import VARCHAR, column_types
from dpforest_duckdb.engine.base import (
    Coding,
    DeclaredColumn,
    Engine,
    ModelStore,
    Outcomes,
    StoredRow,
)
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.columns.read_types import TypesFrom, read_as
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import Home, StoredComment
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent


@dataclass(frozen=True)
class ReadableRows:
    """A database that the rows can be read in.

    `fill` makes them readable under the name of the table, by reading them once or by a view.
    `check` is called after each reading; it raises `DpforestError` if the rows have changed.
    """

    statements: Statements
    cursor: duckdb.DuckDBPyConnection
    fill: Callable[[], None]
    check: Callable[[], None] = lambda: None


class Source(Protocol):
    """Rows that are in no table.

    `columns` are the names and the types as DuckDB reads them. `types_from` says what decides about
    the types that a run reads. `rounded` are columns whose whole numbers may have been rounded
    before they were read. `catalog` is the database that they are read in. `in_transaction` says
    that they are read in a transaction of the user's connection, which can have one only.
    """

    @property
    def name(self) -> str: ...

    @property
    def catalog(self) -> str: ...

    @property
    def columns(self) -> Mapping[str, str]: ...

    @property
    def types_from(self) -> TypesFrom: ...

    @property
    def rounded(self) -> Collection[str]: ...

    @property
    def in_transaction(self) -> bool: ...

    def opened(self, table: TableInfo) -> AbstractContextManager[ReadableRows]:
        """A database with the columns of `table` in the types of `table`; gone at the end."""


def database_file(engine: DuckDBEngine) -> str:
    """The file of the connection's first database that has one; "" if none has.

    It is not that of the current database, which `USE` changes.
    """
    paths = engine.run(
        "SELECT path FROM system.main.duckdb_databases() "
        "WHERE path IS NOT NULL AND type = 'duckdb' ORDER BY database_oid ASC LIMIT 1"
    )
    return str(paths[0][0]) if paths else ""


class SourceEngine:
    """An engine for rows that are in no table. Models are stored in the user's database."""

    def __init__(self, source: Source, user: DuckDBEngine) -> None:
        self.source = source
        self._user = user

    @property
    def models(self) -> ModelStore:
        return self._user.models

    @property
    def database(self) -> str:
        """The file of the user's database, as `database_file` gives it."""
        return database_file(self._user)

    def table(self, name: str) -> TableInfo:
        """The rows as a table; there is one, so its name is not looked up."""
        return TableInfo(self.source.catalog, "main", name, column_types(self.source.columns))

    def typed(self, table: TableInfo, domain: Domain, unit: PrivacyUnit) -> TableInfo:
        """See `read_as`."""
        source = self.source
        return read_as(table, domain, unit, source.types_from, rounded=source.rounded)

    def declared(self, table: TableInfo) -> list[DeclaredColumn]:
        """The columns. Types alone declare something, and not where they follow from the values."""
        by_values = self.source.types_from is TypesFrom.VALUES
        return [
            DeclaredColumn(name, kind, True, categories=None if by_values else kind.listed)
            for name, kind in table.columns.items()
        ]

    def refuse_unseen(self, table: TableInfo, columns: Collection[str] = ()) -> None:
        """Nothing is unseen: the rows are read where they are."""
        if self.source.in_transaction:
            self._user.refuse_transaction()

    def spills_plain(self, table: TableInfo) -> bool:
        return False

    def same_rows(self, other: Engine) -> bool:
        """Only if it is this engine: each engine reads the rows of its source again."""
        return other is self

    def room(self) -> float:
        return self._user.room()

    def bytes_of_a_row(self, stored: StoredRow) -> int:
        """See `Engine`. In a DataFrame one word makes text of all ids, so they count as text."""
        if stored.unit is not None and self.source.types_from is TypesFrom.VALUES:
            stored = replace(stored, unit=VARCHAR)
        return self._user.bytes_of_a_row(stored)

    def home(self, catalog: str) -> Home:
        return Home("", read_only=True)

    def tables(self, catalog: str) -> list[TableInfo]:
        return []

    def stored_comment(self, table: TableInfo) -> AbstractContextManager[StoredComment]:
        """Raises `DpforestError`: nothing can be stored with these rows."""
        raise DpforestError(
            f'"{table.display}" is no table, so its budget is not stored with it: name a ledger '
            "with --ledger."
        )

    @contextlib.contextmanager
    def snapshot(self, table: TableInfo, *, shared: bool = False) -> Iterator[SourceSnapshot]:
        with self.source.opened(table) as opened:
            yield SourceSnapshot(opened, table, shared=shared)


class SourceSnapshot:
    """The rows of a source; nothing is read before the first count or coding."""

    def __init__(self, opened: ReadableRows, table: TableInfo, *, shared: bool) -> None:
        self._opened = opened
        self._table = table
        self._shared = shared
        self._filled: DuckDBSnapshot | None = None

    def encode(self, coding: Coding, *, likely_rows: int = 0, last: bool = False) -> DuckDBRows:
        coded = self._read().encode(coding, likely_rows=likely_rows, last=last)
        self._opened.check()
        return coded

    def table_seen(self) -> None:
        """None: the rows are in no table."""

    def count_outcomes(self, forest: ForestContent, labels: Attribute) -> Outcomes:
        found = self._read().count_outcomes(forest, labels)
        self._opened.check()
        return found

    def count_outcome_grid(
        self,
        forest: ForestContent,
        labels: Attribute,
        unit: PrivacyUnit,
        edges: Sequence[float],
        salt: int,
    ) -> Integers:
        found = self._read().count_outcome_grid(forest, labels, unit, edges, salt)
        self._opened.check()
        return found

    def _read(self) -> DuckDBSnapshot:
        """The rows as a table, which is filled at the first call."""
        if self._filled is None:
            self._opened.fill()
            cursor, statements = self._opened.cursor, self._opened.statements
            self._filled = DuckDBSnapshot(statements, self._table, cursor, shared=self._shared)
        return self._filled
