"""The private rows of a DuckDB table at one moment, read through a connection of our own.

Its search path is `system.main`, so a macro that the database or the user's session defines
(`floor`, `"+"`, `range`) changes nothing in a statement that reads private rows. It holds one
transaction from the first reading to the last, so a run reads the same rows each time. The
transaction ends when the rows are coded for the last time: until then DuckDB frees no temporary
table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import duckdb

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Coding, Outcomes
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.connection.statements import Statements, second_connection
from dpforest_duckdb.engine.connection.temp_space import KEPT_TABLES
from dpforest_duckdb.engine.tables.outcomes import DuckDBOutcomes
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.sql import render


class DuckDBSnapshot:
    """The rows of one table as they were when they were first read.

    If a run asks for the same codes again, it gets the ones it has. They are kept until it asks for
    rows for the last time. This takes no more space, because DuckDB frees temporary tables only at
    the end of the transaction. Bootstrap samples and the rows of a second phase are coded each time
    that they are needed. Salts are not compared: a run has only one. Other runs may use the same
    codes, because no guarantee needs a salt of their own.

    With `shared`, several runs share the codes. Each run has a transaction of its own. At its start
    the hashes of the rows are compared with those of the coded rows; if they differ, the codes are
    dropped. So each run sees the rows of one moment here too. Only the last KEPT_TABLES coded
    tables are kept, because runs that draw their bins seldom share them.

    `found` looks the table up in the catalogue, in the transaction of the rows.
    """

    def __init__(
        self,
        statements: Statements,
        table: TableInfo,
        cursor: duckdb.DuckDBPyConnection,
        *,
        shared: bool,
        found: Callable[[], TableInfo] | None = None,
    ) -> None:
        self._statements = statements
        self._found = found
        self._table = table
        self._cursor = cursor
        self._open = False
        self._shared = shared
        self._coded: dict[tuple[object, ...], DuckDBRows] = {}
        self._hashes: object = None
        if not shared:
            self._begin()

    def _begin(self) -> None:
        """Open the transaction of a run, unless it is open; forget the codes of other rows."""
        if self._open:
            return
        self._statements.run("BEGIN", on=self._cursor)
        self._open = True
        if self._shared:
            hashes = self._statements.run(
                render(
                    "hash_rows",
                    row=self._statements.row_of(self._table),
                    source=self._statements.rows_of(self._table, []),
                ),
                on=self._cursor,
                step="hash_rows",
            )
            if hashes != self._hashes or self._statements.trace:
                self._forget()  # whoever sees the statements would see that rows have changed
            self._hashes = hashes

    def _forget(self) -> None:
        for rows in self._coded.values():
            rows.drop()
        self._coded.clear()

    def _end(self) -> None:
        self._statements.run("COMMIT", on=self._cursor)
        self._open = False

    def encode(self, coding: Coding, *, likely_rows: int = 0, last: bool = False) -> DuckDBRows:
        self._begin()
        kept = coding.sample != "bootstrap" and not coding.first_phase
        alike = (coding.domain, coding.unit, coding.sample, coding.parts)
        rows = self._coded.pop(alike, None) if kept else None
        if rows is None:
            rows = DuckDBRows(
                StoredRows.encoded(self._statements, self._cursor, self._table, coding)
            )
        owned = not kept or (last and not self._shared)
        if not owned:
            self._coded[alike] = rows
            for oldest in list(self._coded)[:-KEPT_TABLES]:
                self._coded.pop(oldest).drop()
        if last:
            if not self._shared:
                self._forget()
            self._end()
        if not kept:
            return rows
        return rows.with_same_codes(coding.node_columns, likely_rows=likely_rows, owned=owned)

    def table_seen(self) -> TableInfo | None:
        self._begin()
        return self._found() if self._found else None

    def count_outcomes(self, forest: ForestContent, labels: Attribute) -> Outcomes:
        return self._outcomes(forest, labels).groups()

    def count_outcome_grid(
        self,
        forest: ForestContent,
        labels: Attribute,
        unit: PrivacyUnit,
        edges: Sequence[float],
        salt: int,
    ) -> Integers:
        return self._outcomes(forest, labels).grid(unit, edges, salt)

    def _outcomes(self, forest: ForestContent, labels: Attribute) -> DuckDBOutcomes:
        return DuckDBOutcomes(self._statements, self._cursor, self._table, forest, labels)


def new_cursor(statements: Statements) -> duckdb.DuckDBPyConnection:
    """A connection to the user's database that no macro of the database reaches."""
    cursor = second_connection(statements.connection)
    statements.run("SET search_path = 'system.main'", on=cursor)
    return cursor


@contextlib.contextmanager
def taken(
    statements: Statements,
    table: TableInfo,
    found: Callable[[duckdb.DuckDBPyConnection], TableInfo],
    *,
    shared: bool,
) -> Iterator[DuckDBSnapshot]:
    """A snapshot of a table; the rows coded from it are dropped at the end."""
    with contextlib.closing(new_cursor(statements)) as cursor:
        yield DuckDBSnapshot(statements, table, cursor, shared=shared, found=lambda: found(cursor))
