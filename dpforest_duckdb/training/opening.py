"""What to train on: a table, a query, a DataFrame or files, each with its engine and its budget.

And the models that are stored in a database.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from dpforest_duckdb.arguments import TEXT, refuse_wrong_types
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.engine.duckdb import DuckDBEngine, refuse_no_connection
from dpforest_duckdb.engine.files import CsvFiles, opened_files
from dpforest_duckdb.engine.frames import Frame, is_frame
from dpforest_duckdb.engine.memory_database import NewDatabase
from dpforest_duckdb.engine.query_reads import read_tables, reads_files, scanned_table
from dpforest_duckdb.engine.read_types import whole_number_remarks
from dpforest_duckdb.engine.relations import Relation
from dpforest_duckdb.engine.sources import SourceEngine
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.files import SparkFiles
from dpforest_duckdb.engine.spark.steps import is_session
from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger.account import Account, has_cap
from dpforest_duckdb.ledger.accounts import AnyAccount, KeptAccount
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount, capped_files
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest

Rows = Any  # a table's name, a relation, a DataFrame, or a Path (or glob) of files


@dataclass(frozen=True)
class FoundRows:
    """Rows that were found, and not read: their engine, and what is known of them."""

    engine: DuckDBEngine | SourceEngine | SparkEngine
    table: TableInfo
    files: tuple[Path, ...] = ()

    @property
    def in_table(self) -> bool:
        """Whether they are the rows of a base table, which has a budget of its own."""
        return not isinstance(self.engine, SourceEngine | SparkFiles)

    @property
    def in_text(self) -> bool:
        """Whether they are the rows of CSV files, of which damaged ones are left out."""
        return isinstance(self.engine, SourceEngine) and isinstance(self.engine.source, CsvFiles)

    def remarks(self, domain: Domain, columns: Mapping[str, ColumnType] | None = None) -> list[str]:
        """What a bound domain may get wrong: nothing, if the rows have types of their own.

        `columns` are the types that columns are read as, if the domain decides about them.
        """
        engine = self.engine
        if not isinstance(engine, SourceEngine) or engine.source.schema:
            return []
        spelt = engine.source.remarks(domain) if isinstance(engine.source, CsvFiles) else []
        return [*whole_number_remarks(domain, columns or {}), *spelt]

    def account_or(
        self, given: AnyAccount | None, ledger: str | Path | None, dataset: str | None
    ) -> AnyAccount:
        """The `given` budget, which only a DataFrame may have, or else the budget of the rows."""
        if given is None:
            return self.account(ledger, dataset)
        if isinstance(self.engine, SourceEngine) and isinstance(self.engine.source, Frame):
            return given
        raise UsageError(
            "account is for DataFrames: tables, queries and files have budgets of their own."
        )

    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        """The budget of the rows. Raises `DpforestError` if they have no place for one."""
        if isinstance(self.engine, SparkEngine) and ledger is None:
            raise DpforestError(
                "Spark has no file that a budget could be kept beside: name one with --ledger."
            )
        if isinstance(self.engine, SparkFiles):
            book = Ledger(str(ledger))
            return DatasetAccount(book, self.files, dataset, tuple(self.table.columns))
        if not isinstance(self.engine, SourceEngine):
            if dataset is not None:
                raise UsageError(
                    "--dataset is for files, DataFrames and queries: a table has a budget of its "
                    "own."
                )
            return Account.of(self.engine, self.table, ledger)
        if not self.files and dataset is None:
            raise UsageError(
                "These rows are no table and no file, so their budget needs a name: give one with "
                "--dataset."
            )
        book = Ledger(_ledger_path(self.engine, ledger))
        source, columns = self.engine.source, tuple(self.table.columns)
        if not isinstance(source, Relation):
            return DatasetAccount(book, self.files, dataset, columns)
        refuse = partial(_refuse_capped, source, ledger, book, str(dataset))
        refuse()
        return DatasetAccount(book, (), dataset, columns, refuse)


def find_rows(con: Any, rows: Rows, trace: Trace | None = None) -> FoundRows:
    """Find the rows to train on; none is read. Raises `DpforestError` or `UsageError`.

    `con` is a DuckDB connection or a Spark session.
    """
    if is_session(con):
        return _of_spark(con, rows, trace)
    refuse_no_connection(con)
    engine = DuckDBEngine(con, trace)
    if isinstance(rows, str):
        return FoundRows(engine, _table(engine, rows))
    database = NewDatabase(con, trace)
    if isinstance(rows, Path):
        files = opened_files(rows, database)
        return _of_source(SourceEngine(files, engine), files.files)
    if isinstance(rows, duckdb.DuckDBPyRelation):
        table = scanned_table(engine, rows)
        if table is not None:
            return FoundRows(engine, table)
        return _of_source(SourceEngine(Relation.of("query", rows, engine), engine))
    if is_frame(rows):
        rows = Frame.of("frame", rows, database)
    if isinstance(rows, Frame):
        return _of_source(SourceEngine(rows, engine))
    raise UsageError(
        "The rows to train on must be a table's name, a DuckDB relation, a pandas, polars or Arrow "
        "table, or a pathlib.Path of Parquet or CSV files."
    )


def _table(engine: DuckDBEngine, name: str) -> TableInfo:
    """The table of a name. Raises `DpforestError`, with a hint if the name is that of a file."""
    try:
        return engine.table(name)
    except DpforestError:
        if not os.path.isfile(name):  # unlike Path.is_file, it takes any text
            raise
    raise DpforestError(
        f'There is no table "{name}" in the database, but a file: name it with --db alone (in '
        "Python as a pathlib.Path)."
    )


def stored_forest(con: Any, name: str) -> Forest:
    """The forest that is stored under a name in the database of a DuckDB connection.

    Raises `DpforestError` if there is none.
    """
    refuse_wrong_types(locals(), name=TEXT)
    refuse_no_connection(con)
    return store.load(DuckDBEngine(con).models, name)


def _of_spark(session: Any, rows: Rows, trace: Trace | None) -> FoundRows:
    if isinstance(rows, Path):
        engine = SparkFiles(session, rows, trace)
        return FoundRows(engine, engine.table(engine.name), engine.files)
    if isinstance(rows, str):
        spark = SparkEngine(session, trace)
        return FoundRows(spark, spark.table(rows))
    raise UsageError(
        "The rows to train on in Spark must be a table's name, or a pathlib.Path of Parquet files."
    )


def _of_source(engine: SourceEngine, files: tuple[Path, ...] = ()) -> FoundRows:
    return FoundRows(engine, engine.table(engine.source.name), files)


def _ledger_path(engine: SourceEngine, ledger: str | Path | None) -> str | Path:
    """The ledger as named, else the one beside the connection's database."""
    if ledger is not None:
        return ledger
    path = engine.database
    if not path:
        raise DpforestError(
            "The budget of files, DataFrames and queries is kept in a ledger: name one with "
            "--ledger."
        )
    return f"{path}.ledger"


def _refuse_capped(source: Relation, ledger: str | Path | None, book: Ledger, dataset: str) -> None:
    """Raise `BudgetError` if a query reads anything that has a cap of its own."""
    for table in read_tables(source.engine, source.relation):
        if has_cap(source.engine, table, ledger):
            raise BudgetError(
                f'Refused: the query may read table "{table.display}", which has a cap: train on '
                "the table itself."
            )
    if capped_files(book, dataset) and reads_files(source.engine, source.relation):
        raise BudgetError(
            "Refused: the query may read files, and a file has a cap in this ledger: train on the "
            "files themselves."
        )
