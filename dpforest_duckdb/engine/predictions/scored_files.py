"""Predictions for the rows of Parquet and CSV files, as a new file."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb.domain.table import TableInfo, refuse_folders
from dpforest_duckdb.domain.types import column_types
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.engine.columns.read_types import TypesFrom
from dpforest_duckdb.engine.predictions.read_beside import read_beside
from dpforest_duckdb.engine.sources.files import folder_names, opened_files
from dpforest_duckdb.engine.sources.memory_database import NewDatabase
from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.scoring.score_sql import Scored, added_names, score_sql

_FORMATS = {".parquet": "FORMAT parquet", ".csv": "FORMAT csv, HEADER"}


def check_format(out: str) -> None:
    """Raise `UsageError` for a file that is neither Parquet nor CSV."""
    if Path(out).suffix not in _FORMATS:
        raise UsageError(
            "Scored data files go to a file: name it with --into FILE.parquet or .csv."
        )


def score_files(
    con: duckdb.DuckDBPyConnection,
    forest: ForestContent,
    files: Path,
    out: Path,
    *,
    suffix: str,
    prefix: str,
    trace: Trace | None,
) -> list[str]:
    """Write the rows of files with predictions and probabilities added; returns the columns.

    `suffix` is that of the kind of file to write. Raises `DpforestError`.
    """
    source = opened_files(files, NewDatabase(con, trace, out))
    columns = column_types(source.columns)
    folders = folder_names(source.files)
    table = TableInfo(source.catalog, "main", source.name, columns, folders=folders)
    refuse_folders(table, forest.read_columns)
    rows = Scored(DUCKDB.ident(*table.key), columns)
    if source.types_from is not TypesFrom.SCHEMA:
        forest, rows = read_beside(forest, rows, source.types_from)
    sql = score_sql(forest, rows, prefix=prefix, fast=True, keep=list(columns))
    copy = f"COPY ({sql}) TO {DUCKDB.text(str(out))} ({_FORMATS[suffix]}, USE_TMP_FILE false)"
    with source.opened(table) as opened:
        opened.fill()
        opened.statements.run(copy, step="score", on=opened.cursor)
    return [*columns, *added_names(forest, prefix)]
