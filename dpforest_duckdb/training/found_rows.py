"""Rows to train on that were found, and not read: their engine, and where their budget is kept.

There is one class for each place where rows can be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.engine.columns.read_types import TypesFrom, whole_number_remarks
from dpforest_duckdb.engine.sources.engine import SourceEngine, database_file
from dpforest_duckdb.engine.sources.files import CsvFiles, ParquetFiles
from dpforest_duckdb.engine.sources.query_reads import read_tables, reads_files
from dpforest_duckdb.engine.sources.relations import Relation
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.files import SparkFiles
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger.account import Account, OtherLedgerError, has_cap
from dpforest_duckdb.ledger.accounts import AnyAccount, KeptAccount
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount, capped_files

SPARK_NEEDS_LEDGER = "Spark has no file that a budget could be kept beside: name one with --ledger."


@dataclass(frozen=True)
class FoundRows(ABC):
    """What is known of rows before one is read.

    `in_table` says that they are the rows of a base table, which has a budget of its own.
    """

    engine: DuckDBEngine | SourceEngine | SparkEngine
    table: TableInfo
    in_table: ClassVar[bool] = False

    @property
    def in_text(self) -> bool:
        """Whether they are the records of CSV files, of which damaged ones are left out."""
        return False

    @property
    def typed(self) -> bool:
        """Whether the types of the columns are declared where the rows are."""
        return True

    @property
    def lasting(self) -> bool:
        """Whether they are still there when the connection is closed."""
        return True

    def remarks(self, domain: Domain, columns: Mapping[str, ColumnType] | None = None) -> list[str]:
        """What a bound domain may get wrong: nothing, if the rows are typed.

        `columns` are the types that columns are read as, if the domain decides about them.
        """
        return [] if self.typed else whole_number_remarks(domain, columns or {})

    def account_or(
        self, given: AnyAccount | None, ledger: str | Path | None, dataset: str | None
    ) -> AnyAccount:
        """The `given` budget, which only a DataFrame may have, or else the budget of the rows.

        Raises `UsageError` for a given budget of other rows, and as `account` does.
        """
        if given is None:
            return self.account(ledger, dataset)
        raise UsageError(
            "account is for DataFrames: tables, queries and files have budgets of their own."
        )

    @abstractmethod
    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        """The budget of the rows.

        Raises `DpforestError` if they have no place for one, and `UsageError` for a `dataset` where
        rows have a budget of their own, or without one where they need it.
        """


@dataclass(frozen=True)
class TableRows(FoundRows):
    """The rows of a table of DuckDB, or of a database that is attached to it."""

    engine: DuckDBEngine | SparkEngine
    in_table = True

    @property
    def lasting(self) -> bool:
        return bool(self.engine.home(self.table.catalog).path)

    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        if dataset is not None:
            raise UsageError(
                "--dataset is for files, DataFrames and queries: a table has a budget of its own."
            )
        return Account.of(self.engine, self.table, ledger)


@dataclass(frozen=True)
class SparkTableRows(TableRows):
    """The rows of a table of Spark."""

    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        return super().account(_named_for_spark(ledger), dataset)


@dataclass(frozen=True)
class SparkFileRows(FoundRows):
    """The rows of Parquet files that Spark reads."""

    engine: SparkFiles

    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        book = Ledger(_named_for_spark(ledger))
        return DatasetAccount(book, self.engine.files, dataset, tuple(self.table.columns))


@dataclass(frozen=True)
class SourceRows(FoundRows):
    """Rows that are in no table: the kinds below."""

    engine: SourceEngine

    @property
    def typed(self) -> bool:
        return self.engine.source.types_from is TypesFrom.SCHEMA

    def _of_dataset(self, ledger: str | Path | None, dataset: str | None) -> DatasetAccount:
        if dataset is None:
            raise UsageError(
                "These rows are no table and no file, so their budget needs a name: give one with "
                "--dataset."
            )
        return DatasetAccount(self._book(ledger), (), dataset, tuple(self.table.columns))

    def _book(self, ledger: str | Path | None) -> Ledger:
        return _beside(self.engine.database, ledger)


@dataclass(frozen=True)
class FileRows(SourceRows):
    """The rows of Parquet or CSV files."""

    source: ParquetFiles | CsvFiles

    @property
    def in_text(self) -> bool:
        return self.source.in_text

    def remarks(self, domain: Domain, columns: Mapping[str, ColumnType] | None = None) -> list[str]:
        return [*super().remarks(domain, columns), *self.source.remarks(domain)]

    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        columns = tuple(self.table.columns)
        return DatasetAccount(self._book(ledger), self.source.files, dataset, columns)


@dataclass(frozen=True)
class FrameRows(SourceRows):
    """The rows of a DataFrame, whose budget may be in memory."""

    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        return self._of_dataset(ledger, dataset)

    def account_or(
        self, given: AnyAccount | None, ledger: str | Path | None, dataset: str | None
    ) -> AnyAccount:
        return self.account(ledger, dataset) if given is None else given


@dataclass(frozen=True)
class QueryRows(SourceRows):
    """The rows of a query, which must not read anything that has a cap of its own."""

    relation: Relation

    def account(self, ledger: str | Path | None, dataset: str | None) -> KeptAccount:
        account = self._of_dataset(ledger, dataset)
        refuse = partial(
            _refuse_capped_sources, self.relation, ledger, account.ledger, str(dataset)
        )
        refuse()
        return replace(account, refuse_capped_sources=refuse)


def dataset_account(
    engine: DuckDBEngine | None, ledger: str | Path | None, dataset: str
) -> DatasetAccount:
    """The budget of a dataset by its name alone, without its rows; no `engine` is Spark's."""
    if engine is None:
        return DatasetAccount(Ledger(_named_for_spark(ledger)), (), dataset)
    return DatasetAccount(_beside(database_file(engine), ledger), (), dataset)


def _beside(database: str, ledger: str | Path | None) -> Ledger:
    """The ledger as named, else the one beside the connection's database, "" if it has no file."""
    if ledger is not None:
        return Ledger(ledger)
    if not database:
        raise DpforestError(
            "The budget of files, DataFrames and queries is kept in a ledger, which also says "
            "whether they have a cap: name one with --ledger."
        )
    return Ledger(f"{database}.ledger")


def _named_for_spark(ledger: str | Path | None) -> str | Path:
    if ledger is None:
        raise UsageError(SPARK_NEEDS_LEDGER)
    return ledger


def _refuse_capped_sources(
    source: Relation, ledger: str | Path | None, book: Ledger, dataset: str
) -> None:
    """Raise `BudgetError` if a query reads anything that has a cap of its own.

    And `DpforestError` if it reads a table with a budget in another ledger than the query's.
    """
    for table in read_tables(source.engine, source.relation):
        try:
            capped = has_cap(source.engine, table, ledger)
        except OtherLedgerError:
            raise DpforestError(
                f'The query may read table "{table.display}", which has a budget in another ledger '
                f"than {book.path}: a query must use the ledger of the tables that it reads, so "
                "name that one with --ledger."
            ) from None
        if capped:
            raise BudgetError(
                f'Refused: the query may read table "{table.display}", which has a cap: train on '
                "the table itself."
            )
    if capped_files(book, dataset) and reads_files(source.engine, source.relation):
        raise BudgetError(
            "Refused: the query may read files, and a file has a cap in this ledger: train on the "
            "files themselves."
        )
