"""The columns of DataFrames of any library, as DuckDB can read them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.engine.sources.pandas_texts import with_texts
from dpforest_duckdb.engine.sources.unreadable_values import objects_of, without_unreadable
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.sql import Sql

ident = DUCKDB.ident
_NAME, _ARROW = "dpforest frame", "dpforest arrow frame"
_FRAME = ident(_NAME)
LARGEST = np.iinfo(np.int64).max


def kinds_of(rows: Any) -> dict[Any, Any]:
    """The types of the columns of NumPy or pandas; none of another library."""
    if isinstance(rows, dict):
        return {name: column.dtype for name, column in rows.items()}
    return dict(rows.dtypes.items()) if hasattr(rows, "iloc") else {}


def is_rounded(kind: Any) -> bool:
    """Whether a type has floating-point numbers; sparse ones, intervals and categories too."""
    within = getattr(kind, "subtype", None) or getattr(
        getattr(kind, "categories", None), "dtype", None
    )
    return getattr(kind, "kind", "") in ("f", "c") or (within is not None and is_rounded(within))


def column_names(rows: Any) -> list[Any]:
    """The names of the columns of a frame of any library."""
    return list(rows.column_names if hasattr(rows, "column_names") else rows.columns)


def without_rows(rows: Any) -> Any:
    """A frame with the same columns and no row; categories of pandas have no labels.

    So its types are those of the rows, but no value is read to find them.
    """
    if isinstance(rows, dict):
        return {name: column[:0] for name, column in rows.items()}
    if not hasattr(rows, "iloc"):
        return rows.slice(0, 0)
    empty = rows.iloc[:0].copy()
    for name, kind in rows.dtypes.items():
        if (labels := getattr(kind, "categories", None)) is not None:
            empty[name] = empty[name].cat.set_categories(labels[:0])
    return empty


def without_batch(rows: Any) -> Any:
    """An Arrow record batch as a table, which has the same columns; anything else as it is."""
    if not type(rows).__module__.startswith("pyarrow") or type(rows).__name__ != "RecordBatch":
        return rows
    from pyarrow import Table

    return Table.from_batches([rows])


def registered(connection: duckdb.DuckDBPyConnection, rows: Any, used: Collection[str] = ()) -> Sql:
    """The frame as SQL to read from. Every value of the columns `used` can be read.

    Columns of Arrow and others of a pandas frame are read side by side. If DuckDB read both at
    once, it would convert the others to Arrow, which fails for objects of several types. Raises
    `DpforestError` for a frame that DuckDB cannot read.
    """
    try:
        arrow, others = _parts(rows)
        if others is not None:
            _register_known(connection, others, used)
        if arrow is None:
            return _FRAME
        table, texts = _with_bytes(arrow)
        connection.register(_ARROW, table)
    except (duckdb.Error, TypeError, ValueError, ImportError, SystemError, NotImplementedError):
        raise DpforestError(
            "DuckDB cannot read this frame: convert it to a pandas DataFrame or an Arrow table "
            "(polars and Arrow need pyarrow)."
        ) from None
    beside = "" if others is None else f" POSITIONAL JOIN {_FRAME}"
    columns = ", ".join(
        f"TRY(decode({ident(name)})) AS {ident(name)}" if name in texts else ident(name)
        for name in map(str, column_names(rows))
    )
    return Sql(f"(SELECT {columns} FROM {ident(_ARROW)}{beside})")


def _parts(rows: Any) -> tuple[Any, Any]:
    """The columns of Arrow as an Arrow table, and the other columns; None for no columns."""
    if hasattr(rows, "column_names"):
        return rows, None
    if hasattr(rows, "to_arrow"):
        return _parts_of_polars(rows)
    if isinstance(rows, dict):
        return None, {name: _known(column) for name, column in rows.items()}
    rows = _with_whole_numbers(with_texts(rows))
    names = [name for name, kind in rows.dtypes.items() if _is_arrow(kind)]
    if not names:
        return None, rows
    from pyarrow import Table

    others = rows.drop(columns=names)
    return Table.from_pandas(rows[names], preserve_index=False), others if others.shape[1] else None


def _parts_of_polars(rows: Any) -> tuple[Any, Any]:
    """See `_parts`. Objects, and whole numbers of 128 bits, have no type in Arrow.

    One number decides whether a column has 128 bits, with a sign or without one.
    """
    import polars

    objects = [name for name, kind in rows.schema.items() if kind == polars.Object]
    others = {name: rows[name].to_numpy() for name in objects}
    nested = [name for name, kind in rows.schema.items() if kind.is_nested()]
    empty = polars.lit(None, dtype=polars.List(polars.String))
    typed = rows.drop(objects).with_columns(empty.alias(name) for name in nested)
    long = [getattr(polars, name, polars.Int128) for name in ("Int128", "UInt128")]
    typed = typed.cast(dict.fromkeys(long, polars.String))
    return typed.to_arrow() if typed.width else None, others or None


def _known(column: Any) -> Any:
    """A column of NumPy in a type that DuckDB knows: bytes as text, time differences as objects."""
    if column.dtype.kind == "S":
        texts = np.char.decode(column, "latin-1")  # no two bytes become one text
        return texts.astype(str, copy=False)  # without rows, NumPy 1 gives numbers
    return _differences(column) if column.dtype.kind == "m" else column


def _differences(column: Any) -> Any:
    """Time differences as objects of Python; as text where these would be rounded, or microseconds
    do not fit into 64 bits.
    """
    one = np.ones(1, column.dtype).astype("m8[us]")
    of_one = int(one.view(np.int64)[0])  # 0 for units below a microsecond
    most = LARGEST // of_one if of_one else LARGEST - 10**12  # a rounded one may be 10^12 less
    fit = ~np.isnat(column) & (np.abs(column.view(np.int64)) <= most)
    rounded = column[fit].astype("m8[us]")
    found = np.full(len(column), None, dtype=object)
    found[fit] = rounded.astype(object)
    fit[fit] = rounded.astype(column.dtype) == column[fit]
    for place in np.flatnonzero(~fit & ~np.isnat(column)):
        found[place] = str(column[place])
    return found


def _with_whole_numbers(rows: Any) -> Any:
    """A frame of pandas with whole numbers in the place of categories that are whole numbers.

    If one is missing, DuckDB reads the categories as floating-point numbers, and so rounds them.
    """
    whole = [name for name, kind in rows.dtypes.items() if _has_whole_categories(kind)]
    if not whole:
        return rows
    from pandas.arrays import IntegerArray

    rows = rows.copy(deep=False)
    for name in whole:
        held, codes = rows[name].cat.categories, rows[name].cat.codes.to_numpy()
        kind = getattr(held.dtype, "numpy_dtype", held.dtype)
        numbers, missing = np.zeros(len(codes), kind), codes < 0
        numbers[~missing] = held.to_numpy(kind)[codes[~missing]]
        rows[name] = type(rows[name])(IntegerArray(numbers, missing), index=rows.index)
    return rows


def _has_whole_categories(kind: Any) -> bool:
    categories = getattr(kind, "categories", None)
    whole = getattr(getattr(categories, "dtype", None), "kind", "") in ("i", "u")
    return whole and not _is_arrow(kind)


def _is_arrow(kind: Any) -> bool:
    """Whether pandas keeps values, or categories, of this type in Arrow."""
    values = getattr(getattr(kind, "categories", None), "dtype", kind)
    return hasattr(values, "pyarrow_dtype") or getattr(values, "storage", "") == "pyarrow"


def _with_bytes(table: Any) -> tuple[Any, set[str]]:
    """An Arrow table with bytes in the place of text, and the names of these columns; types that
    DuckDB cannot read are others (see `_readable`).

    Arrow does not check that text is Unicode. DuckDB does when it decodes bytes, and relies on it
    when it sorts.
    """
    texts = set()
    for place, field_ in enumerate(table.schema):
        column = _readable(table.column(place))
        if kind := _bytes_of(column.type):
            column = column.cast(kind)
            texts.add(field_.name)
        if column.type != field_.type or _is_geometry(field_):
            table = table.set_column(place, field_.name, column)
    return table, texts


def _is_geometry(field_: Any) -> bool:
    """Whether DuckDB would read the bytes of an Arrow column as geometry, which may be damaged."""
    name: bytes = (field_.metadata or {}).get(b"ARROW:extension:name", b"")
    return name.startswith(b"geoarrow")


def _readable(column: Any) -> Any:
    """An Arrow column in a type of which DuckDB can read any value.

    In a list of decimal numbers, one of many digits makes numbers that DuckDB does not know; they
    become text. They may be in nested columns too, which no run reads: these become lists without
    values. Time differences, and some moments in a time zone, become bytes, which can only be a
    privacy unit: DuckDB cannot read those far from today, and merges those of one microsecond.
    Dates in milliseconds become moments, because DuckDB merges those of one day.
    """
    import pyarrow

    coded = pyarrow.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    text = pyarrow.string()
    if pyarrow.types.is_decimal256(kind):
        return column.cast(kind).cast(text)
    if pyarrow.types.is_nested(kind):
        return pyarrow.nulls(len(column), pyarrow.list_(text))
    in_zone = getattr(kind, "tz", None) is not None and kind.unit in ("s", "ms")
    if in_zone or pyarrow.types.is_duration(kind) or pyarrow.types.is_interval(kind):
        return _viewed(column.cast(kind), pyarrow.binary(kind.bit_width // 8))
    if pyarrow.types.is_date64(kind):
        return _viewed(column.cast(kind), pyarrow.timestamp("ms"))
    return column


def _viewed(column: Any, kind: Any) -> Any:
    """An Arrow column with its values as those of another type of the same width."""
    import pyarrow

    return pyarrow.chunked_array([chunk.view(kind) for chunk in column.chunks], type=kind)


def _bytes_of(kind: Any) -> Any:
    """The type of the bytes of an Arrow text, which is no copy; None for other types."""
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        values = _bytes_of(kind.value_type)
        return values and pyarrow.dictionary(kind.index_type, values)
    return {
        pyarrow.string(): pyarrow.binary(),
        pyarrow.large_string(): pyarrow.large_binary(),
        pyarrow.string_view(): pyarrow.binary_view(),
    }.get(kind)


def _register_known(
    connection: duckdb.DuckDBPyConnection, rows: Any, used: Collection[str]
) -> None:
    """Register a frame of NumPy or pandas.

    DuckDB converts fixed-width text and text categories here. If it cannot, because of a value in a
    column that is not `used`, they become objects, which it converts when it reads them. So do
    types that it does not know, as pandas makes objects of them if one value is of another type.
    """
    rows = without_unreadable(rows, used)
    try:
        connection.register(_NAME, rows)
    except duckdb.Error:
        objects = without_unreadable(_as_objects(connection, rows), used)
        connection.register(_NAME, objects)


def _as_objects(connection: duckdb.DuckDBPyConnection, rows: Any) -> Any:
    """The frame with objects in the place of fixed-width text, and of types that DuckDB does not
    know or whose categories it cannot convert.
    """
    if isinstance(rows, dict):
        return {
            name: objects_of(column)
            if column.dtype.kind == "U"
            else column.astype(object)
            if _is_unknown(connection, {name: column[:0]})
            else column
            for name, column in rows.items()
        }
    unknown = [name for name in rows.columns if _is_unknown(connection, rows[[name]].iloc[:0])]
    return rows.astype(dict.fromkeys(unknown, object))


def _is_unknown(connection: duckdb.DuckDBPyConnection, column: Any) -> bool:
    """Whether DuckDB refuses the type of a column, which is given without its values."""
    try:
        connection.register(_NAME, column)
    except duckdb.Error:
        return True
    return False
