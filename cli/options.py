"""Options that several verbs share, and opening the database."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.models import ArgumentInfo

from dpforest_duckdb.cli import sections
from dpforest_duckdb.cli.output import show_statement
from dpforest_duckdb.errors import DpforestError, UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.engine.base import Trace
    from dpforest_duckdb.engine.duckdb import DuckDBEngine
    from dpforest_duckdb.engine.spark.engine import SparkEngine
    from dpforest_duckdb.model.forest import Forest

DataDb = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        envvar="DPFOREST_DB",
        help="The DuckDB database file, or Parquet or CSV files: a path or a glob in quotes.",
    ),
]
MaybeDataDb = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="FILE",
        envvar="DPFOREST_DB",
        help="The database file, or data files.",
        rich_help_panel=sections.DATA,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A name for your data files: the ledger keeps their budget under it.",
        rich_help_panel=sections.BUDGET,
    ),
]
MaybeDb = Annotated[
    str | None,
    typer.Option("--db", metavar="FILE", envvar="DPFOREST_DB", help="The DuckDB database file."),
]


def completed_recipe(start: str) -> list[str]:
    """The recipes whose names begin with what was typed, for the shell."""
    from dpforest_duckdb.recipes import RECIPES

    return [name for name in RECIPES if name.startswith(start)]


EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="duckdb|spark",
        help="Where the rows are read.",
        rich_help_panel=sections.MACHINE,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Start Spark, such as local[4]. [default: local[*]]",
        rich_help_panel=sections.MACHINE,
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        metavar="sc://HOST", help="The address of Spark Connect.", rich_help_panel=sections.MACHINE
    ),
]


@dataclass(frozen=True)
class Spark:
    """Where Spark runs: a master, or the address of Spark Connect."""

    master: str
    remote: str | None


def spark_of(engine: str, master: str | None, remote: str | None) -> Spark | None:
    """Where Spark runs, or None for DuckDB."""
    if engine not in ("duckdb", "spark"):
        raise UsageError("--engine is duckdb or spark.")
    if engine == "duckdb":
        refuse_idle("goes with --engine spark", master=master, remote=remote)
        return None
    if master is not None and remote is not None:
        raise UsageError("--master starts a Spark and --remote uses one: give either.")
    return Spark(master or "local[*]", remote)


def one_of(kind: type[StrEnum]) -> ArgumentInfo:
    """An argument that is one of a few words."""

    def parse(word: str) -> StrEnum:
        if word not in list(kind):
            raise typer.BadParameter(f'"{word}" is none of these.')
        return kind(word)

    found: ArgumentInfo = typer.Argument(parser=parse, metavar="|".join(kind))
    return found


MaybeTable = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="TABLE", help="A table: t or schema.t.", rich_help_panel=sections.DATA
    ),
]
Model = Annotated[
    str, typer.Option(metavar="NAME|FILE", help="A model in the database, or its JSON file.")
]
Epsilon = Annotated[
    list[str],
    typer.Option(
        "--epsilon",
        metavar="E",
        help="ε, a decimal above zero; may be repeated.",
        rich_help_panel=sections.BUDGET,
    ),
]
Delta = Annotated[
    str,
    typer.Option(
        metavar="D",
        help="δ, such as 1e-5, far below 1 / (number of persons); 0 is pure ε.",
        rich_help_panel=sections.BUDGET,
    ),
]
MaybeDelta = Annotated[
    str | None,
    typer.Option(
        "--delta",
        metavar="D",
        help="δ, such as 1e-5, far below 1 / (number of persons); 0 is pure ε. [default: 0]",
    ),
]
PrivacyUnit = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|row",
        help="What ε protects: all rows with the same value of a column, or each row.",
        rich_help_panel=sections.BUDGET,
    ),
]
Prefix = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="Prefix for prediction and p_<class>, if the table has such columns."
    ),
]
RowsPerUnit = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=1_000_000,
        help="Use at most N rows of each privacy unit. [default: the cap's, or 1]",
        rich_help_panel=sections.BUDGET,
    ),
]


def _absolute_path(context: typer.Context, path: str | None) -> str | None:
    """The ledger's path. In the environment a relative one would mean another ledger in each
    folder.
    """
    source = context.get_parameter_source("ledger")
    if path and source and source.name == "ENVIRONMENT" and not Path(path).is_absolute():
        raise typer.BadParameter(
            "DPFOREST_LEDGER has a relative path, which means another ledger in each folder: give "
            "an absolute path."
        )
    return path


Ledger = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="DPFOREST_LEDGER",
        callback=_absolute_path,
        help="The budget ledger. [default: DB.ledger, beside the database]",
        rich_help_panel=sections.BUDGET,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="One JSON object on stdout, everything else on stderr.",
        rich_help_panel=sections.RESULT,
    ),
]
ShowSql = Annotated[
    bool,
    typer.Option(
        "--show-sql",
        help="Print every statement on stderr before it runs.",
        rich_help_panel=sections.RESULT,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        metavar="N",
        help="DuckDB's threads. [default: all]",
        rich_help_panel=sections.MACHINE,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="DuckDB's memory limit, such as 8GB.", rich_help_panel=sections.MACHINE
    ),
]
TempDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="A folder for DuckDB's temporary files.",
        rich_help_panel=sections.MACHINE,
    ),
]


@contextlib.contextmanager
def opened(
    db: str,
    *,
    read_only: bool = False,
    show_sql: bool = False,
    threads: int | None = None,
    memory_limit: str | None = None,
    temp_dir: str | None = None,
) -> Iterator[DuckDBEngine]:
    """The engine on a database file; closed at the end."""
    from dpforest_duckdb.engine.connect import open_database
    from dpforest_duckdb.engine.duckdb import DuckDBEngine

    with open_database(
        db, read_only=read_only, threads=threads, memory_limit=memory_limit, temp_dir=temp_dir
    ) as connection:
        yield DuckDBEngine(connection, show_statement if show_sql else None)


def rows_of(db: str | None, table: str | None) -> tuple[str, str | Path]:
    """The database to open, and the rows in it or beside it: a table's name, or files."""
    from dpforest_duckdb.engine.connect import MEMORY
    from dpforest_duckdb.engine.files import is_data_file

    if db is None:
        raise UsageError("Name the database, or data files, with --db.")
    if is_data_file(db) or (table is None and Path(db).is_dir()):
        if table is not None:
            raise UsageError("--table goes with a database: data files are one table each.")
        return MEMORY, Path(db)
    if table is None:
        raise UsageError(
            "Name the table of the database with --table; the names of data files end in .parquet, "
            ".csv or .tsv."
        )
    return db, table


@contextlib.contextmanager
def opened_rows(
    database: str,
    where: Spark | None,
    show_sql: bool,
    threads: int | None,
    memory_limit: str | None,
    temp_dir: str | None,
) -> Iterator[tuple[Any, Trace | None]]:
    """A connection to the database, or a session of Spark, and what to call with statements."""
    if where is None:
        with opened(
            database,
            show_sql=show_sql,
            threads=threads,
            memory_limit=memory_limit,
            temp_dir=temp_dir,
        ) as engine:
            yield engine.connection, engine.trace
        return
    refuse_idle("is for DuckDB", threads=threads, memory_limit=memory_limit, temp_dir=temp_dir)
    from dpforest_duckdb.engine.spark.connect import opened_session

    with opened_session(where.master, where.remote) as session:
        yield session, show_statement if show_sql else None


@contextlib.contextmanager
def opened_spark(where: Spark, show_sql: bool) -> Iterator[SparkEngine]:
    """The engine on a session of Spark, which ends at the end."""
    from dpforest_duckdb.engine.spark.engine import SparkEngine

    with opened_rows("", where, show_sql, None, None, None) as (session, trace):
        yield SparkEngine(session, trace)


@contextlib.contextmanager
def opened_for_model(
    db: str | None, model: str, *, show_sql: bool = False
) -> Iterator[tuple[DuckDBEngine | None, Forest]]:
    """A model, and the engine if there is a database; a model in a file needs none."""
    from dpforest_duckdb.engine.files import is_data_file

    if db is not None and is_data_file(db):
        yield None, file_model(model)
        return
    if db is None:
        if not is_file(model):
            raise UsageError("Name the database that holds the model with --db, or a .json file.")
        from dpforest_duckdb.model.forest import load_forest

        yield None, load_forest(model)
        return
    from dpforest_duckdb.model import store

    with opened(db, read_only=True, show_sql=show_sql) as engine:
        yield engine, store.load(engine.models, model)


@contextlib.contextmanager
def data_account(db: str | None, dataset: str | None, ledger: str | None) -> Iterator[Any]:
    """The budget of data files or of a dataset."""
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


def file_model(model: str) -> Forest:
    """A model for data files, which hold none."""
    if not is_file(model):
        raise UsageError("Data files hold no models: name the model's .json file with --model.")
    from dpforest_duckdb.model.forest import load_forest

    return load_forest(model)


def is_file(model: str) -> bool:
    """Whether --model is a JSON file, if no stored model has that name."""
    return model.endswith(".json") or os.sep in model


def column_names(option: str, texts: Sequence[str] | None) -> list[str]:
    """Names from a repeated option, separated by commas; quotes protect a comma in a name."""
    if texts is None:
        return []
    names = [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]
    if not names:  # for example an empty shell variable: not the same as leaving the option out
        raise UsageError(f"{option} names no column.")
    return names


def refuse_idle(why: str, **given: object) -> None:
    """Refuse options that would have no effect."""
    for name, value in given.items():
        if value not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} {why}.")


def check_out(path: str, *others: str | None, replace: bool) -> None:
    """Refuse a model file that cannot be written, before any work is done.

    `others` are files of the same command, which must not be overwritten.
    """
    if Path(path).suffix != ".json":
        raise UsageError("--out must end in .json: --model reads such a name as a file.")
    check_writable(path, *others, replace=replace)


def check_writable(path: str, *others: str | None, replace: bool, option: str = "--out") -> None:
    """Refuse a file that cannot be written, or that is one of the `others`."""
    target = Path(path)
    if any(other and os.path.realpath(path) == os.path.realpath(other) for other in others):
        raise UsageError(
            f"{option} names the database, its ledger or a file that is read: choose another file."
        )
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise DpforestError(f"The file {path} cannot be written: check its folder and {option}.")
    if target.exists() and not replace:
        raise DpforestError(f"There is a file {path} already: choose another or pass --replace.")
