"""Opening what a verb reads: a database, data files, Spark, or the file of a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpforest_duckdb.cli.exit_codes import stop_if_interrupted
from dpforest_duckdb.cli.options import refuse_idle
from dpforest_duckdb.cli.output import show_statement
from dpforest_duckdb.errors import UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.engine.base import Trace
    from dpforest_duckdb.engine.spark.engine import SparkEngine
    from dpforest_duckdb.engine.spark.steps import Session
    from dpforest_duckdb.engine.tables.engine import DuckDBEngine
    from dpforest_duckdb.ledger.accounts import KeptAccount
    from dpforest_duckdb.model.forest import Forest
    from dpforest_duckdb.training.opening import Connection

NO_MODELS = "Data files hold no models: name the model's .json file with --model."


@dataclass(frozen=True)
class Spark:
    """Where Spark runs: a master, or the address of Spark Connect."""

    master: str
    remote: str | None


def spark_of(engine: str, master: str | None, remote: str | None) -> Spark | None:
    """Where Spark runs, or None for DuckDB.

    Raises `UsageError` for another engine, and for options that it does not have.
    """
    if engine not in ("duckdb", "spark"):
        raise UsageError("--engine is duckdb or spark.")
    if engine == "duckdb":
        refuse_idle("goes with --engine spark", master=master, remote=remote)
        return None
    if master is not None and remote is not None:
        raise UsageError("--master starts Spark and --remote uses one that runs: give one of them.")
    return Spark(master or "local[*]", remote)


@dataclass(frozen=True)
class Machine:
    """What DuckDB may use: threads, memory, and a folder for temporary files."""

    threads: int | None = None
    memory_limit: str | None = None
    temp_dir: str | None = None


@contextlib.contextmanager
def opened(
    db: str, *, read_only: bool = False, show_sql: bool = False, machine: Machine = Machine()
) -> Iterator[DuckDBEngine]:
    """The engine on a database file; closed at the end."""
    from dpforest_duckdb.engine.connection.connect import open_database
    from dpforest_duckdb.engine.tables.engine import DuckDBEngine

    with open_database(db, read_only=read_only, **asdict(machine)) as connection:
        stop_if_interrupted()
        yield DuckDBEngine(connection, show_statement if show_sql else None)


def rows_of(db: str | None, table: str | None) -> tuple[str, str | Path]:
    """The database to open, and the rows in it or beside it: a table's name, or files.

    Raises `UsageError` if the options name neither, or both.
    """
    from dpforest_duckdb.engine.connection.connect import MEMORY
    from dpforest_duckdb.engine.sources.files import is_data_file

    if db is None:
        raise UsageError("Name the database, or data files, with --db.")
    if is_data_file(db) or (table is None and Path(db).is_dir()):
        if table is not None:
            raise UsageError("--table goes with a database, not with data files: leave it out.")
        return MEMORY, Path(db)
    if table is None:
        raise UsageError(
            "Name the table of the database with --table; the names of data files end in .parquet, "
            ".csv or .tsv."
        )
    return db, table


@contextlib.contextmanager
def opened_rows(
    database: str, where: Spark | None, show_sql: bool, machine: Machine
) -> Iterator[tuple[Connection, Trace | None]]:
    """A connection to the database, or a session of Spark, and what to call with statements."""
    if where is None:
        with opened(database, show_sql=show_sql, machine=machine) as engine:
            yield engine.connection, engine.trace
        return
    refuse_idle("is for DuckDB", **asdict(machine))
    with _session(where) as session:
        yield session, show_statement if show_sql else None


@contextlib.contextmanager
def opened_spark(where: Spark, show_sql: bool) -> Iterator[SparkEngine]:
    """The engine on a session of Spark, which ends at the end."""
    from dpforest_duckdb.engine.spark.engine import SparkEngine

    with _session(where) as session:
        yield SparkEngine(session, show_statement if show_sql else None)


def _session(where: Spark) -> AbstractContextManager[Session]:
    from dpforest_duckdb.engine.spark.connect import opened_session

    return opened_session(where.master, where.remote)


@contextlib.contextmanager
def opened_for_model(
    db: str | None, model: str, *, show_sql: bool = False
) -> Iterator[tuple[DuckDBEngine | None, Forest]]:
    """A model, and the engine if there is a database; a model in a file needs none.

    Raises `UsageError` if neither a database nor a file is named.
    """
    if db is None:
        refusal = "Name the database that holds the model with --db, or a .json file."
        yield None, file_model(model, refusal)
        return
    from dpforest_duckdb.engine.sources.files import is_data_file
    from dpforest_duckdb.model import store

    if is_data_file(db):
        yield None, file_model(model)
        return
    with opened(db, read_only=True, show_sql=show_sql) as engine:
        yield engine, store.load(engine.models, model)


@contextlib.contextmanager
def data_account(db: str | None, dataset: str | None, ledger: str | None) -> Iterator[KeptAccount]:
    """The budget of data files or of a dataset. Raises `UsageError` if it has no ledger."""
    from dpforest_duckdb.ledger.book import Ledger
    from dpforest_duckdb.ledger.datasets import DatasetAccount
    from dpforest_duckdb.training.opening import find_rows

    if db is None:
        if ledger is None:
            raise UsageError("The budget of a dataset is in a ledger: name it with --ledger.")
        yield DatasetAccount(Ledger(ledger), (), dataset)
        return
    database, rows = rows_of(db, None)
    with opened(database) as engine:
        yield find_rows(engine.connection, rows).account(ledger, dataset)


def file_model(model: str, refusal: str = NO_MODELS) -> Forest:
    """The model in a file. Raises `UsageError` with the `refusal` for the name of a stored one."""
    from dpforest_duckdb.model.files import is_model_file
    from dpforest_duckdb.model.forest import load_forest

    if not is_model_file(model):
        raise UsageError(refusal)
    return load_forest(model)
