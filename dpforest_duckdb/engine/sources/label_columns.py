"""Labels in columns of pandas, polars and Arrow, in types of which NumPy converts every value."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from dpforest_duckdb.engine.sources.pandas_texts import (
    by_code,
    has_zone,
    is_time_of_day,
    texts_of,
    with_texts,
)
from dpforest_duckdb.engine.sources.unreadable_values import readable

FIRST_DAY, LAST_DAY = dt.date(1970, 1, 1).toordinal(), dt.date.max.toordinal()
MILLISECONDS = 24 * 3600 * 1000  # of a day


def readable_labels(y: Any) -> Any:
    """Labels with texts in the place of types of which NumPy cannot convert every value.

    These are moments in a time zone and times of day in pandas, and texts and times of day in
    Arrow, which may be no Unicode and no time of day. Text of NumPy that is no Unicode is missing,
    and so are dates beyond the years of Python that pandas keeps in Arrow. Anything else stays as
    it is.
    """
    if isinstance(y, np.ndarray) and y.dtype.kind == "U" and y.ndim == 1:
        return readable(y)
    if hasattr(y, "iloc") and hasattr(y, "columns"):
        y = with_texts(y)
        return readable_labels(y.iloc[:, 0]) if y.shape[1] == 1 else y
    kind = getattr(y, "dtype", None)
    if type(kind).__module__.startswith("pandas"):
        return _of_pandas(y, kind)
    if type(y).__module__.startswith("polars"):
        return _of_polars(y)
    in_arrow = type(y).__module__.startswith("pyarrow") and hasattr(y, "type")
    return _texts_in_arrow(y, y) if in_arrow else y


def _of_pandas(y: Any, kind: Any) -> Any:
    """Labels in a type of pandas."""
    if hasattr(kind, "categories"):
        return _of_categories(y)
    if has_zone(kind) or is_time_of_day(kind):
        import pandas

        return texts_of(pandas.Series(y)).to_numpy()
    if hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", "") == "pyarrow":
        import pyarrow

        column = pyarrow.array(y)
        if pyarrow.types.is_date(column.type):
            return _dates(column)
        return _texts_in_arrow(column, y)
    return y


def _of_polars(y: Any) -> Any:
    """Labels in a type of polars. NumPy has no integers of 128 bits."""
    if hasattr(y, "get_columns"):  # a frame
        return readable_labels(y.to_series()) if len(y.columns) == 1 else y
    kind = str(getattr(y, "dtype", ""))
    if kind in ("String", "Categorical"):
        return _texts_in_arrow(y.to_arrow(), y)
    return np.array(y.to_list(), dtype=object) if kind.endswith("Int128") else y


def _of_categories(y: Any) -> Any:
    """Labels that are categories of pandas, if their values are not readable as they are."""
    held = getattr(y, "cat", y)
    values = readable_labels(held.categories)
    if values is held.categories:
        return y
    return by_code(np.asarray(values, dtype=object), np.asarray(held.codes))


def _texts_in_arrow(column: Any, y: Any) -> Any:
    """The texts of an Arrow column of texts or times of day, without those that are no Unicode;
    `y` for other types.
    """
    import pyarrow

    types = pyarrow.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_time(kind):
        return np.array(column.cast(kind).cast(pyarrow.string()).to_pylist(), dtype=object)
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        return y
    held = column.cast(kind).cast(
        pyarrow.binary_view() if types.is_string_view(kind) else pyarrow.large_binary()
    )
    return np.array([_decoded(value) for value in held.to_pylist()], dtype=object)


def _dates(column: Any) -> Any:
    """The dates of an Arrow column, as those of Python; None beyond the years 1 to 9999."""
    import pyarrow

    in_days = column.type == pyarrow.date32()
    numbers = column.cast(pyarrow.int32() if in_days else pyarrow.int64()).to_pylist()
    found = np.full(len(numbers), None, dtype=object)
    for place, number in enumerate(numbers):
        if number is not None:
            day = FIRST_DAY + (number if in_days else number // MILLISECONDS)
            found[place] = dt.date.fromordinal(day) if 0 < day <= LAST_DAY else None
    return found


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
