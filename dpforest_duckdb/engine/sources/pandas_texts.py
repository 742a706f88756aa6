"""Texts in the place of values of pandas that one value of another type would make objects of."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Mask

SAFE = np.datetime64("1678-01-01", "s")  # from then on pandas knows the offset of every zone


def with_texts(rows: Any) -> Any:
    """A frame of pandas with texts in the place of types that are no attribute's; frames of other
    libraries as they are.
    """
    if not hasattr(rows, "iloc"):
        return rows
    odd = [name for name, kind in rows.dtypes.items() if _is_object_beside_others(kind)]
    rows = rows.copy(deep=False) if odd else rows
    for name in odd:
        rows[name] = texts_of(rows[name])
    return rows


def has_texts_alone(column: Any) -> bool:
    """Whether a column of objects has no other values than texts and missing ones."""
    if not hasattr(column, "index"):
        return all(value is None or type(value) is str for value in column.tolist())
    from pandas.api.types import infer_dtype

    return bool(infer_dtype(column, skipna=True) == "string")


def _is_object_beside_others(kind: Any) -> bool:
    """Whether a type of pandas is no attribute's: moments in a time zone, times, time differences.

    One value of another type makes objects of them, which are read by their text. So they always
    are, and no value decides whether a run is refused.
    """
    if (categories := getattr(kind, "categories", None)) is not None:
        return getattr(categories.dtype, "kind", "") == "m" or has_zone(kind)
    return getattr(kind, "kind", "") == "m" or is_time_of_day(kind) or has_zone(kind)


def is_time_of_day(kind: Any) -> bool:
    """Whether pandas keeps times of day of this type in Arrow."""
    return str(getattr(kind, "pyarrow_dtype", "")).startswith(("time32", "time64"))


def has_zone(kind: Any) -> bool:
    """Whether a type of pandas has moments in a time zone; as categories or in intervals too."""
    values = getattr(getattr(kind, "categories", None), "dtype", None)
    within = values if values is not None else getattr(kind, "subtype", None)
    if within is not None:
        return has_zone(within)
    in_arrow = "tz=" in str(getattr(kind, "pyarrow_dtype", ""))  # such as timestamp[us, tz=UTC]
    return in_arrow or _is_in_zone(kind)


def _is_in_zone(kind: Any) -> bool:
    return getattr(kind, "tz", None) is not None


def texts_of(column: Any) -> Any:
    """A column of pandas as the texts of its values."""
    kind = column.dtype
    if hasattr(kind, "categories"):
        return _of_categories(column)
    if has_zone(getattr(kind, "subtype", None)):
        return _of_intervals(column)
    in_arrow = getattr(kind, "pyarrow_dtype", None)
    if is_time_of_day(kind):
        column = _times_of_day(column, in_arrow)
    if getattr(in_arrow, "tz", None) is not None:
        column = _without_arrow(column, in_arrow)
    return _moments(column) if _is_in_zone(column.dtype) else _as_python_writes(column)


def _of_categories(column: Any) -> Any:
    """The texts of a column's categories, in their places."""
    texts = texts_of(type(column)(column.cat.categories)).to_numpy()
    placed = by_code(texts, column.cat.codes.to_numpy())
    return type(column)(placed, index=column.index, dtype=object)


def by_code(values: Any, codes: Any) -> Any:
    """The value of each code of pandas, as an object; None for a missing one, which is -1."""
    found = np.full(len(codes), None, dtype=object)
    known = codes >= 0
    found[known] = values[codes[known]]
    return found


def _of_intervals(column: Any) -> Any:
    """The texts of intervals between moments in a time zone, as Python writes intervals.

    pandas would make objects of the moments (see `_moments`).
    """
    held = column.array
    start = "[" if held.closed in ("left", "both") else "("
    end = "]" if held.closed in ("right", "both") else ")"
    ends = [texts_of(type(column)(side)) for side in (held.left, held.right)]
    texts = [
        None if low is None or high is None else f"{start}{low}, {high}{end}"
        for low, high in zip(*ends, strict=True)
    ]
    return type(column)(texts, index=column.index, dtype=object)


def _as_python_writes(column: Any, offset: str = "") -> Any:
    """The texts of a column of pandas; those of moments may get the offset of a time zone."""
    texts = np.full(len(column), None, dtype=object)
    known = column.notna().to_numpy()
    texts[known] = [str(value) + offset for value in column[known].astype(object)]
    return type(column)(texts, index=column.index, dtype=object)


def _moments(column: Any) -> Any:
    """The texts of moments in a time zone; none beyond the years 1 to 9999, where Python has none.

    Before 1678 pandas reads the offset of most zones from memory that is not its own, and often
    ends the process. So these moments get the offset of the first day of that year.
    """
    utc = column.dt.tz_convert("UTC").dt.tz_localize(None)
    utc = utc.mask(_without_text(utc))
    early = (utc < SAFE).to_numpy()
    late = column.where(~early & utc.notna())
    texts = _as_python_writes(late.mask(_without_text(late.dt.tz_localize(None))))
    if not early.any():
        return texts
    (first,) = type(column)([SAFE]).dt.tz_localize("UTC").dt.tz_convert(column.dt.tz)
    local = utc[early] + first.utcoffset()
    offset = str(first)[len("1678-01-01 00:00:00") :]
    found = texts.to_numpy(copy=True)
    found[early] = _as_python_writes(local.mask(_without_text(local)), offset)
    return type(column)(found, index=column.index, dtype=object)


def _times_of_day(column: Any, kind: Any) -> Any:
    """Times of day, which pandas keeps in Arrow, as objects: text as Python writes times.

    Python leaves out nanoseconds, so they are added to its text. A number that is no time of day
    has a text of its own.
    """
    import pyarrow

    times = pyarrow.array(column)
    if kind.unit != "ns":
        times = times.cast(pyarrow.time64("us"))
    texts = times.cast(pyarrow.string()).to_pylist()
    for end in ("000", ".000000") if kind.unit == "ns" else (".000000",):
        texts = [text and text.removesuffix(end) for text in texts]
    return type(column)(texts, index=column.index, dtype=object)


def _without_arrow(column: Any, kind: Any) -> Any:
    """Moments in a time zone, which pandas keeps in Arrow, in a type of its own.

    By their numbers, because pandas refuses to convert moments far from today.
    """
    import pyarrow

    numbers = pyarrow.array(column).cast(pyarrow.int64()).fill_null(np.iinfo(np.int64).min)  # NaT
    plain = np.asarray(numbers).view(f"M8[{kind.unit}]")
    return type(column)(plain, index=column.index).dt.tz_localize("UTC").dt.tz_convert(kind.tz)


def _without_text(moments: Any) -> Mask:
    """Which moments without a time zone are beyond the years of Python."""
    seconds = moments.to_numpy().astype("M8[s]")
    first, end = np.datetime64("0001-01-01", "s"), np.datetime64("10000-01-01", "s")
    found: Mask = (seconds < first) | (seconds >= end)
    return found
