"""Queries of the user's connection as sources of rows.

A query that reads all of one base table, and nothing else, is that table. Any other is a source of
its own: it is run once, on the user's connection, into a database in memory beside the user's. What
it reads is looked up in the same transaction, so no other connection can change a view, a macro or
a table in between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import duckdb

from dpforest_duckdb.domain.names import fold, random_name
from dpforest_duckdb.domain.table import TableInfo, columns_changed
from dpforest_duckdb.engine.columns.casts import selected
from dpforest_duckdb.engine.columns.read_types import TypesFrom
from dpforest_duckdb.engine.sources.engine import ReadableRows
from dpforest_duckdb.engine.sources.memory_database import Part
from dpforest_duckdb.engine.sources.query_reads import refuse_unreadable
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.engine.tables.snapshot import new_cursor
from dpforest_duckdb.errors import DpforestError, RefusedStatementError
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.sql import render


@dataclass(frozen=True)
class Relation:
    """The rows of a query, read once."""

    name: str
    relation: duckdb.DuckDBPyRelation = field(repr=False)
    columns: Mapping[str, str]
    engine: DuckDBEngine
    catalog: str
    types_from = TypesFrom.DOMAIN
    rounded = ()
    in_transaction = True

    @staticmethod
    def of(name: str, relation: duckdb.DuckDBPyRelation, engine: DuckDBEngine) -> Relation:
        """The query with its columns. No row is read.

        Raises `DpforestError` for two columns of one name, a relation of another connection, and
        what `refuse_unreadable` refuses.
        """
        names = engine.call(lambda: relation.columns)  # refuses a closed connection
        if len({fold(column) for column in names}) < len(names):
            raise DpforestError(
                "The query has two columns of one name (the database ignores case): rename one."
            )
        try:
            relation.cross(engine.connection.sql("SELECT 1"))
        except duckdb.Error:
            raise DpforestError(
                "The relation belongs to another connection: make it with the one you pass."
            ) from None
        refuse_unreadable(engine, relation)
        return Relation(name, relation, columns_of(relation), engine, random_name())

    def _refuse_changed(self) -> None:
        """Raise `DpforestError` if the query reads another view than when it was found."""
        refuse_unreadable(self.engine, self.relation)
        sql, user = self.engine.call(self.relation.sql_query), self.engine.connection
        if self.engine.call(lambda: columns_of(user.sql(sql))) != self.columns:
            raise columns_changed("the query")

    @contextlib.contextmanager
    def opened(self, table: TableInfo) -> Iterator[ReadableRows]:
        """The rows in a database in memory, attached to the user's connection meanwhile.

        The connection is in one transaction from here until the rows are read.
        """
        engine, ident = self.engine, DUCKDB.ident
        alias = random_name()  # a table or view of this name would be read
        reading = contextlib.ExitStack()  # what ends the transaction

        def fill() -> None:
            part = Part(selected(self.columns, table.columns), ident(alias))
            sql = render("read", made=ident(*table.key), copied=True, parts=[part])
            try:
                engine.call(lambda: self.relation.query(alias, sql), step="read", sql=sql)
            except RefusedStatementError:
                raise DpforestError(
                    "The query cannot be read: use TRY_CAST or TRY(…) where it may fail for a row, "
                    "and make it again if a table that it reads has changed."
                ) from None
            engine.run("COMMIT")
            reading.pop_all()

        def roll_back() -> None:
            with contextlib.suppress(DpforestError):  # Ctrl-C came before BEGIN
                engine.settle("ROLLBACK")

        try:
            engine.run(f"ATTACH ':memory:' AS {ident(table.catalog)} (READ_WRITE)")
            with reading, contextlib.closing(new_cursor(engine)) as cursor:
                reading.callback(roll_back)
                engine.run("BEGIN")
                self._refuse_changed()
                yield ReadableRows(engine, cursor, fill)
        finally:
            engine.settle(f"DETACH DATABASE IF EXISTS {ident(table.catalog)}")


def columns_of(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    """The names of a query's columns and of their types."""
    kinds = map(str, relation.types)
    return dict(zip(relation.columns, kinds, strict=True))
