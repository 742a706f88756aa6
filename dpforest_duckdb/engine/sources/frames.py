"""DataFrames as sources of rows: pandas, polars, Arrow tables, and NumPy arrays by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain.names import fold, is_unicode
from dpforest_duckdb.domain.table import TableInfo, columns_changed
from dpforest_duckdb.domain.types import NO_VALUES, column_types
from dpforest_duckdb.engine.columns.casts import selected
from dpforest_duckdb.engine.columns.read_types import TypesFrom
from dpforest_duckdb.engine.connection.connect import CATALOG
from dpforest_duckdb.engine.sources.engine import ReadableRows
from dpforest_duckdb.engine.sources.frame_columns import (
    column_names,
    is_rounded,
    kinds_of,
    registered,
    without_rows,
)
from dpforest_duckdb.engine.sources.memory_database import DatabaseOpener, MemoryDatabase, Part
from dpforest_duckdb.engine.tables.snapshot import new_cursor
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.sql import Sql


class Columns(Protocol):
    """What a DataFrame of pandas or polars, a table of Arrow and a relation of DuckDB have."""

    @property
    def columns(self) -> Any: ...


AnyFrame = Columns | Mapping[str, NDArray[Any]]  # `is_frame` decides

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
    rounded: frozenset[str]
    types_from = TypesFrom.VALUES
    in_transaction = False
    catalog = CATALOG

    @staticmethod
    def of(name: str, rows: Any, database: DatabaseOpener) -> Frame:
        """The frame with its columns: their names and types, without a value.

        Raises `DpforestError` for column names that DuckDB cannot have, columns of different
        lengths, and types that one value may change.
        """
        names = [str(column) for column in (rows if isinstance(rows, dict) else column_names(rows))]
        if not names:
            raise DpforestError("The frame has no columns: check how it is made.")
        if not all(map(is_unicode, names)):
            raise DpforestError(
                "A column of the frame has a name that is not valid Unicode: rename it."
            )
        if len({fold(column) for column in names}) < len(names):
            raise DpforestError(
                "The frame has two columns of one name (the database ignores case): rename one."
            )
        short = [name for name, kind in kinds_of(rows).items() if kind == np.float16]
        if short:
            raise DpforestError(
                f'Column "{short[0]}" of the frame has the type float16, which one value may '
                "change: convert it to float32."
            )
        _refuse_unequal(rows)
        with database.opened() as memory:
            _, kinds = _registered(memory, without_rows(rows))
        floats = {name for name, kind in column_types(kinds).items() if kind.family == "float"}
        floats |= {str(name) for name, kind in kinds_of(rows).items() if is_rounded(kind)}
        return Frame(name, rows, kinds, database, frozenset(floats))

    @contextmanager
    def opened(self, table: TableInfo) -> Iterator[ReadableRows]:
        """See `Source`. No value is read before the rows are filled in, which is after the debit.

        Raises `DpforestError` if a column of the table is gone, or has another length by now.
        """
        _refuse_unequal(self.rows)
        with self.database.opened() as memory:
            _, present = _registered(memory, without_rows(self.rows))
            if not table.columns.keys() <= present.keys():
                raise columns_changed("the frame")
            cursor = new_cursor(memory)

            def fill() -> None:
                view, stored = _registered(memory, self.rows)
                columns = selected(stored, table.columns, table.categories)
                memory.create(table, [Part(columns, view)], copied=False)
                # each connection has views of its own
                registered(cursor, self.rows, table.columns)

            yield ReadableRows(memory, cursor, fill)

    @contextmanager
    def reading(self) -> Iterator[tuple[MemoryDatabase, Sql, Mapping[str, str]]]:
        """A database, the frame in it as SQL, and the types that its columns have there."""
        with self.database.opened() as memory:
            yield memory, *_registered(memory, self.rows, self.columns)


def _refuse_unequal(rows: Any) -> None:
    """Raise `DpforestError` for columns of different lengths, which only NumPy columns may have."""
    if isinstance(rows, dict) and len({len(column) for column in rows.values()}) > 1:
        raise DpforestError("The columns of the frame differ in length: make them equal.")


def _registered(
    memory: MemoryDatabase, rows: Any, used: Collection[str] = ()
) -> tuple[Sql, Mapping[str, str]]:
    """A frame as `registered` gives it, and the types of its columns.

    polars and Arrow have a type for columns without values, and text categories without labels are
    an empty ENUM. One value would change both, so they are text.
    """
    view = registered(memory.connection, rows, used)
    types = {}
    for name, kind, *_ in memory.run(f"DESCRIBE FROM {view}"):
        types[name] = "VARCHAR" if kind == "ENUM()" else kind.replace(NO_VALUES, "VARCHAR")
    return view, types
