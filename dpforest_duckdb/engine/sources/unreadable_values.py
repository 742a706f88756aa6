"""Frames of NumPy and pandas without the values that DuckDB cannot read as text.

These are texts that are no Unicode, as with a lone surrogate, and objects of which Python cannot
make a text. They are missing, because one of them would end a run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Mask
from dpforest_duckdb.engine.sources.pandas_texts import by_code

_AT_ONCE = 2**16  # values of which one text is made, to see that Python can
_SURROGATES, _LAST = (0xD800, 0xDFFF), 0x10FFFF  # numbers of characters


def without_unreadable(rows: Any, used: Collection[str]) -> Any:
    """The frame, with None in the place of such values in the columns `used`."""
    if isinstance(rows, dict):
        return {name: readable(column) if name in used else column for name, column in rows.items()}
    changed = {
        name: column
        for name, kind in rows.dtypes.items()
        if str(name) in used and (column := _of_pandas(rows[name], kind)) is not None
    }
    rows = rows.copy(deep=False) if changed else rows
    for name, column in changed.items():
        rows[name] = column
    return rows


def objects_of(column: Any) -> Any:
    """Fixed-width text of NumPy as objects; None in the place of what is no Unicode."""
    found = np.full(len(column), None, dtype=object)
    known = ~_no_unicode(column)
    found[known] = column[known].astype(object)
    return found


def _of_pandas(column: Any, kind: Any) -> Any:
    """A column of pandas without the values, as objects; None if it has none of them."""
    if hasattr(kind, "categories"):
        held = np.asarray(column.cat.categories) if _has_objects(column.cat.categories) else None
        if held is None or readable(held) is held:
            return None
        found = by_code(readable(held), column.cat.codes.to_numpy())
    elif _has_objects(column):
        held = column.to_numpy(dtype=object)
        found = readable(held)
        if found is held:
            return None
    else:
        return None
    return type(column)(found, index=column.index, dtype=object)


def _has_objects(column: Any) -> bool:
    """Whether pandas keeps the values of a column, or of an index, as objects of Python."""
    return column.dtype == object or getattr(column.dtype, "storage", "") == "python"


def readable(column: Any) -> Any:
    """A column of NumPy without such values; the column itself if it has none."""
    if column.dtype.kind == "U":
        return objects_of(column) if _no_unicode(column).any() else column
    if column.dtype != object:
        return column
    unreadable = [
        start + place
        for start in range(0, len(column), _AT_ONCE)
        for place in _unreadable(column[start : start + _AT_ONCE].tolist())
    ]
    if unreadable:
        column = column.copy()
        column[unreadable] = None
    return column


def _unreadable(values: list[object]) -> list[int]:
    """The places of values of which Python cannot make a text in Unicode."""
    if _has_text(values):
        return []
    return [place for place, value in enumerate(values) if not _has_text([value])]


def _has_text(values: list[object]) -> bool:
    try:
        "".join(map(str, values)).encode()
    except Exception:  # whatever the code of an object raises
        return False
    return True


def _no_unicode(column: Any) -> Mask:
    """Which fixed-width texts of NumPy have a number that is no character."""
    if not column.dtype.itemsize or not len(column):
        return np.zeros(len(column), dtype=bool)
    native = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("="))
    numbers = native.view(np.uint32).reshape(len(column), -1)
    if numbers.max() < _SURROGATES[0]:
        return np.zeros(len(column), dtype=bool)
    low, high = _SURROGATES
    wrong = ((numbers >= low) & (numbers <= high)) | (numbers > _LAST)
    return np.asarray(wrong.any(axis=1))
