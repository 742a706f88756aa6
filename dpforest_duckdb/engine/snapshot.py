"""The private rows of a DuckDB table at one moment, read through connections of our own.

Two reasons for connections of our own. Their search path is `system.main`, so a macro that the
database or the user's session defines (`floor`, `"+"`, `range`) changes nothing in a statement that
reads private rows. And each holds a transaction that began at the same moment, so all that a run
reads shows the same rows; a transaction ends as soon as its rows are coded, because until then
DuckDB frees no temporary table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import duckdb

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import Sample
from dpforest_duckdb.engine.rows import DuckDBRows
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.tree import Tree

if TYPE_CHECKING:
    from dpforest_duckdb.engine.statements import Statements

ATTEMPTS = 1000  # to begin transactions with no commit of anybody in between


class DuckDBSnapshot:
    """The rows of one table as they were when the snapshot was taken.

    `connections` hold a transaction each, one for each time that the rows may be coded. With
    `shared`, rows that are to be coded alike are coded once.
    """

    def __init__(
        self,
        statements: Statements,
        table: TableInfo,
        connections: Sequence[duckdb.DuckDBPyConnection],
        *,
        shared: bool,
    ) -> None:
        self._statements = statements
        self._table = table
        self._unused = list(connections)
        self._shared: dict[tuple[object, ...], DuckDBRows] | None = {} if shared else None

    def encode(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        *,
        trees: int,
        sample: Sample,
        salt: int,
        first_phase: Sequence[Tree] = (),
        misclassified_weight: int = 1,
    ) -> DuckDBRows:
        alike = (domain, unit, sample, trees if sample == "disjoint" else 1)
        shared = self._shared if sample != "bootstrap" and not first_phase else None
        copies = trees if sample == "all" else 1
        if shared is not None and alike in shared:
            return shared[alike].again(copies)
        own = self._unused.pop()
        rows = DuckDBRows(self._statements, own, domain, copies)
        try:
            rows.encode(
                self._table,
                unit,
                parts=1 if sample == "all" else trees,
                sample=sample,
                salt=salt,
                first_phase=first_phase,
                misclassified_weight=misclassified_weight,
            )
            self._statements.run("COMMIT", on=own)
        except BaseException:  # Ctrl-C may come when the table is there already
            own.close()
            raise
        if shared is not None:
            shared[alike] = rows
            return rows.again(copies)
        return rows


def own_connection(statements: Statements) -> duckdb.DuckDBPyConnection:
    """A connection to the user's database that no macro of the database reaches."""
    own = statements.connection.cursor()
    statements.run("SET search_path = 'system.main'", on=own)
    return own


@contextlib.contextmanager
def taken(
    statements: Statements, table: TableInfo, *, reads: int, shared: bool
) -> Iterator[DuckDBSnapshot]:
    """A snapshot of a table; what was coded from it is gone at the end.

    Raises `DpforestError` if other connections write without a pause.
    """
    with contextlib.ExitStack() as stack:
        own = [
            stack.enter_context(contextlib.closing(own_connection(statements)))
            for _ in range(reads)
        ]
        _begin_together(statements, own, table.catalog)
        yield DuckDBSnapshot(statements, table, own, shared=shared)


def _begin_together(
    statements: Statements, connections: Sequence[duckdb.DuckDBPyConnection], catalog: str
) -> None:
    """Begin a transaction on each connection, all at one moment of a database.

    DuckDB numbers the beginnings and the commits of a database in one sequence. Beginnings that
    follow each other directly have no commit in between.
    """
    path = statements.dialect.text(str(statements.dialect.ident(catalog, "main")))
    for _ in range(ATTEMPTS):
        numbers: list[int] = []
        for own in connections:
            # the number is that of the default database, which the search path names
            own.execute(f"SET search_path = {path}")
        for own in connections:
            own.execute("BEGIN")
            numbers += own.execute("SELECT system.main.txid_current()").fetchall()[0]
        for own in connections:
            own.execute("SET search_path = 'system.main'")
        if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return
        for own in connections:
            own.execute("ROLLBACK")
    raise DpforestError(
        "Other connections write to the database without a pause: run when it is quieter."
    )
