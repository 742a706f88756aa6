"""Where the bounds of a numeric attribute are cut into bins; all of it follows from the domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from dpforest_duckdb.domain.types import Number

Scale = Literal["linear", "log", "mixed"]
DEFAULT_BINS = 32
MAX_BINS = 250
FEW_VALUES = 8  # so few whole numbers get a bin each


def cut(
    lower: Number, upper: Number, bins: int, scale: Scale, *, whole: bool, has_zero: bool
) -> list[Number]:
    """Interior cut points of about `bins` bins over [lower, upper].

    "linear" spaces them equally, "log" logarithmically, "mixed" half of them equally and half on
    the scale of asinh(1000 x / range), which is linear near 0 and logarithmic far from it. In
    "mixed", FEW_VALUES whole numbers or less get a bin each. Where 0 means nothing, as for dates,
    "mixed" has as many bins of equal width.

    Raises `ZeroDivisionError` if a thousandth of the range is too small for a number, in "mixed".
    """
    cuts = _CUTS if has_zero else _CUTS_OF_TIMES
    return cuts[scale](lower, upper, bins, whole)


def _linear(lower: Number, upper: Number, bins: int, whole: bool) -> list[Number]:
    if not whole:
        return [lower + (upper - lower) * share for share in _shares(bins)]
    count = math.floor(upper) - math.ceil(lower) + 1
    bins = max(1, min(bins, count))
    return [math.ceil(lower) - 1 + (i * count) // bins for i in range(1, bins)]


def _log(lower: Number, upper: Number, bins: int, whole: bool) -> list[Number]:
    if lower > 0:
        return [lower * (upper / lower) ** share for share in _shares(bins)]
    return [lower + math.expm1(share * math.log1p(upper - lower)) for share in _shares(bins)]


def _mixed(lower: Number, upper: Number, bins: int, whole: bool) -> list[Number]:
    if whole and upper - lower < FEW_VALUES:
        # the difference of a large float may be rounded to 0, that of whole numbers is exact
        lower, upper = math.ceil(lower), math.floor(upper)
        if upper - lower <= MAX_BINS:
            return list(range(lower, upper))
    near_zero = (upper - lower) / 1000
    low, high = math.asinh(lower / near_zero), math.asinh(upper / near_zero)
    half = bins // 2
    curved = [math.sinh(low + (high - low) * part) * near_zero for part in _shares(half + 1)]
    return sorted({*_linear(lower, upper, half + 1, whole), *curved})


def _even(lower: Number, upper: Number, bins: int, whole: bool) -> list[Number]:
    if whole and upper - lower < FEW_VALUES:
        return list(range(math.ceil(lower), math.floor(upper)))
    return _linear(lower, upper, bins // 2 * 2 + 1, whole)


def _shares(bins: int) -> list[float]:
    return [i / bins for i in range(1, bins)]


_CUTS: Mapping[Scale, Callable[[Number, Number, int, bool], list[Number]]] = {
    "linear": _linear,
    "log": _log,
    "mixed": _mixed,
}
_CUTS_OF_TIMES = {**_CUTS, "mixed": _even}


def rounded(
    lower: Number, edges: Sequence[Number], upper: Number, *, moments: bool
) -> list[Number]:
    """The edges in fewer digits, and moments at whole days, hours, minutes or seconds: rules and
    SQL are then easier to read.

    An edge moves by at most a tenth of the narrower bin beside it, so edges still ascend.
    """
    widths = [high - low for low, high in pairwise((lower, *edges, upper))]
    found: list[Number] = []
    for edge, narrower in zip(edges, map(min, pairwise(widths)), strict=True):
        step = narrower / 5
        if moments:
            whole = next((seconds for seconds in (86_400, 3_600, 60, 1) if seconds <= step), 0)
            found.append(round(edge / whole) * whole if whole else edge)
        else:
            found.append(round(edge, -math.floor(math.log10(step))) if step > 0 else edge)
    return found
