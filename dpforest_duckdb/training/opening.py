"""Find what to train on: a table, a query, a DataFrame or files.

And the models that are stored in a database.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import duckdb

from dpforest_duckdb.arguments import TEXT, refuse_wrong_types
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.engine.sources.engine import Source, SourceEngine
from dpforest_duckdb.engine.sources.files import folder_names, opened_files
from dpforest_duckdb.engine.sources.frames import AnyFrame, Frame, is_frame
from dpforest_duckdb.engine.sources.memory_database import NewDatabase
from dpforest_duckdb.engine.sources.query_reads import scanned_table
from dpforest_duckdb.engine.sources.relations import Relation
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.files import SparkFiles
from dpforest_duckdb.engine.spark.steps import Session, is_session
from dpforest_duckdb.engine.tables.engine import DuckDBEngine, checked_connection
from dpforest_duckdb.errors import DpforestError, UsageError, naming
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.training.found_rows import (
    SPARK_NEEDS_LEDGER,
    FileRows,
    FoundRows,
    FrameRows,
    QueryRows,
    SparkFileRows,
    SparkTableRows,
    TableRows,
    dataset_account,
)

Connection = duckdb.DuckDBPyConnection | Session
Rows = str | Path | AnyFrame  # the name of a table, files by a path or glob, or anything of columns


def find_rows(con: Connection, rows: Rows, trace: Trace | None = None) -> FoundRows:
    """Find the rows to train on; none is read. Raises `DpforestError` or `UsageError`.

    `con` is a DuckDB connection or a Spark session.
    """
    if is_session(con):
        return _of_spark(con, rows, trace)
    engine = DuckDBEngine(checked_connection(con), trace)
    if isinstance(rows, str):
        return TableRows(engine, _table(engine, rows))
    database = NewDatabase(engine.connection, trace)
    if isinstance(rows, Path):
        files = opened_files(rows, database)
        sourced, info = _source(files, engine)
        return FileRows(sourced, replace(info, folders=folder_names(files.files)), files)
    if isinstance(rows, duckdb.DuckDBPyRelation):
        table = scanned_table(engine, rows)
        if table is not None:
            return TableRows(engine, table)
        query = Relation.of("query", rows, engine)
        return QueryRows(*_source(query, engine), query)
    if is_frame(rows):
        rows = Frame.of("frame", rows, database)
    if isinstance(rows, Frame):
        return FrameRows(*_source(rows, engine))
    raise UsageError(
        "The rows must be a table's name, a DuckDB relation, a pandas, polars or Arrow table, a "
        "dictionary of NumPy arrays, or a pathlib.Path of Parquet or CSV files."
    )


def find_engine(con: Connection, ledger: str | Path | None) -> DuckDBEngine | SparkEngine:
    """The engine of all tables of a connection. Raises `UsageError` for Spark without a ledger."""
    if not is_session(con):
        return DuckDBEngine(checked_connection(con))
    if ledger is None:
        raise UsageError(SPARK_NEEDS_LEDGER)
    return SparkEngine(con)


def find_dataset(con: Connection, ledger: str | Path | None, dataset: str | None) -> DatasetAccount:
    """The budget of a dataset by its name alone. Raises `UsageError` without a name."""
    if dataset is None:
        raise UsageError("Pass the rows, or None and the name of a dataset with --dataset.")
    if is_session(con):
        return dataset_account(None, ledger, dataset)
    return dataset_account(DuckDBEngine(checked_connection(con)), ledger, dataset)


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


def stored_forest(con: duckdb.DuckDBPyConnection, name: str) -> Forest:
    """The forest that is stored under a name in the database of a DuckDB connection.

    Raises `DpforestError` if there is none.
    """
    refuse_wrong_types(locals(), name=TEXT)
    with naming({"model": "name"}):
        return store.load(DuckDBEngine(checked_connection(con)).models, name)


def _of_spark(session: Session, rows: Rows, trace: Trace | None) -> FoundRows:
    if isinstance(rows, Path):
        engine = SparkFiles(session, rows, trace)
        return SparkFileRows(engine, engine.table(engine.name))
    if isinstance(rows, str):
        spark = SparkEngine(session, trace)
        return SparkTableRows(spark, spark.table(rows))
    raise UsageError(
        "The rows in Spark must be a table's name, or a pathlib.Path of Parquet files."
    )


def _source(source: Source, engine: DuckDBEngine) -> tuple[SourceEngine, TableInfo]:
    """The engine of rows that are in no table, and what is known of their columns."""
    sourced = SourceEngine(source, engine)
    return sourced, sourced.table(source.name)
