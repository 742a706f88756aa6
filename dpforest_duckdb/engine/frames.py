"""DataFrames as sources of rows: pandas, polars, Arrow tables, and NumPy arrays by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.engine.casts import selected
from dpforest_duckdb.engine.connect import CATALOG
from dpforest_duckdb.engine.memory_database import DatabaseOpener, MemoryDatabase
from dpforest_duckdb.engine.sources import ReadableRows
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.scoring.codes import DuckDBDialect
from dpforest_duckdb.sql import Sql

_LIBRARIES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def is_frame(thing: object) -> bool:
    """Whether this is a table in memory that DuckDB can read more than once."""
    if type(thing) is dict:  # some sparse matrices are dictionaries too
        return bool(thing) and all(
            isinstance(name, str) and isinstance(column, np.ndarray) and column.ndim == 1
            for name, column in thing.items()
        )
    return any(
        _LIBRARIES.get(kind.__module__.partition(".")[0]) == kind.__name__
        for kind in type(thing).__mro__
    )


@dataclass(frozen=True)
class Frame:
    """A table in memory, which is read where it is, without a loop over Python objects.

    No other thread may change it meanwhile: a copy of its text would cost more than all readings.
    """

    name: str
    rows: Any = field(repr=False)
    columns: Mapping[str, str]
    database: DatabaseOpener
    schema = False
    by_values = True
    in_transaction = False
    catalog = CATALOG

    @staticmethod
    def of(name: str, rows: Any, database: DatabaseOpener) -> Frame:
        """The frame with its columns. No row is read."""
        names = [str(column) for column in (rows if isinstance(rows, dict) else _names(rows))]
        if any("\ud800" <= letter <= "\udfff" for name in names for letter in name):
            raise DpforestError("A column of the frame has a name that is no Unicode: rename it.")
        if len({fold(column) for column in names}) < len(names):
            raise DpforestError(
                "The frame has two columns of one name (the database ignores case): rename one."
            )
        if isinstance(rows, dict) and len({len(column) for column in rows.values()}) > 1:
            raise DpforestError("The columns of the frame differ in length: make them equal.")
        with database.opened() as memory:
            found = memory.run(f"DESCRIBE FROM {_registered(memory.connection, rows)}")
        # polars and Arrow have a type for columns without values, which one value would change
        kinds = {column: kind.replace('"NULL"', "VARCHAR") for column, kind, *_ in found}
        return Frame(name, rows, kinds, database)

    @contextmanager
    def opened(self, table: TableInfo) -> Iterator[ReadableRows]:
        with self.reading() as (memory, view):
            rows = Sql(
                f"SELECT {selected(self.columns, table.columns, table.categories)} FROM {view}"
            )
            opened = memory.opened(table, "VIEW", rows)
            _registered(opened.cursor, self.rows)  # each connection has views of its own
            yield opened

    @contextmanager
    def reading(self) -> Iterator[tuple[MemoryDatabase, Sql]]:
        """A database, and the name of the frame as a view in it."""
        with self.database.opened() as memory:
            yield memory, _registered(memory.connection, self.rows)


def _names(rows: Any) -> list[Any]:
    """The names of the columns of a frame of any library."""
    return list(rows.column_names if hasattr(rows, "column_names") else rows.columns)


def _registered(connection: duckdb.DuckDBPyConnection, rows: Any) -> Sql:
    """The frame as a view, by its name as SQL.

    DuckDB converts fixed-width text and text categories here, before the debit. If it cannot,
    because of a value, they become objects, which it converts when it reads them.
    """
    name = "dpforest frame"
    try:
        try:
            connection.register(name, rows)
        except duckdb.Error:
            connection.register(name, _text_as_objects(rows))
    except (duckdb.Error, TypeError, ValueError, ImportError, SystemError):
        raise DpforestError(
            "DuckDB cannot read this frame: convert it to a pandas DataFrame or an Arrow table "
            "(polars and Arrow need pyarrow)."
        ) from None
    return DuckDBDialect().ident(name)


def _text_as_objects(rows: Any) -> Any:
    """The frame with objects in the place of NumPy's fixed-width text and pandas' categories.

    Categories of numbers, truth values or dates stay as they are: they have a type of their own.
    """
    if isinstance(rows, dict):
        return {
            name: column.astype(object) if column.dtype.kind == "U" else column
            for name, column in rows.items()
        }
    if not hasattr(rows, "iloc"):  # polars and Arrow have text that is Unicode alone
        return rows
    text = [
        name
        for name, kind in rows.dtypes.items()
        if kind.name == "category" and kind.categories.dtype.kind == "O"
    ]
    return rows.astype(dict.fromkeys(text, object))
