"""Numbers for the cells of an attribute, so that rows can be summed: positions.

A numeric or ordered attribute has one position: from -REACH at the first cell of a window to REACH
at its last cell, in equal steps. Cells outside the window have the position of its nearer end. Any
other attribute has the contrasts or indicators of `splits.table_codes`, times REACH; NULL is one of
its values if the domain declares it. A row in any other cell has the position 0, and so has a row
whose numeric or ordered attribute is NULL.

So a row adds to each block of a class's vector of positions at most REACH in L1, as joint noise
(`privacy.noise`) asks; and so at most REACH in L2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import log2

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.splits.table_codes import code_of

REACH = 100  # the largest position; the noise of products must stay within the sampler's limits
FEW_CELLS = 8  # an attribute of no more has no window: all its cells are used
COVER = 0.9  # of the rows: a window that holds more is not better
HANDICAP_SHARE = 0.06  # of the rows, for each doubling of a window's length


def has_window(attribute: Attribute) -> bool:
    """Whether a window is drawn for an attribute: for numbers of more than a few cells."""
    return attribute.kind == "numeric" and attribute.proper > FEW_CELLS


def blocks(attribute: Attribute) -> tuple[int, ...]:
    """The dimensions of each block of an attribute's positions."""
    return (1,) if attribute.in_order else code_of(attribute).blocks


def positions(attribute: Attribute, window: tuple[int, int] | None = None) -> Integers:
    """The positions `[cell, dimension]` of an attribute's cells, at most REACH.

    `window` is its first cell and its end; all described cells by default.
    """
    if not attribute.in_order:
        code = code_of(attribute)
        found = np.zeros((attribute.cells, code.signs.shape[1]), dtype=np.int64)
        found[list(code.values)] = code.signs * REACH
        return found
    first, end = window or (0, attribute.proper)
    steps = max(end - first - 1, 1)
    place = np.clip(np.arange(attribute.proper) - first, 0, end - first - 1)
    found = np.zeros((attribute.cells, 1), dtype=np.int64)
    if end - first > 1:
        found[: attribute.proper, 0] = np.rint((2 * place / steps - 1) * REACH)
    return found


def window_utilities(counts: Integers, rows: int) -> Integers:
    """The utility `[window]` of each of `windows`, from private `counts[cell]`.

    It is the rows in the window, up to COVER of a noisy number of `rows`, minus HANDICAP_SHARE
    of that number for each doubling of the length. One more row raises it by 0 or 1: sensitivity 1,
    monotone.
    """
    first, end = windows(len(counts))
    up_to = np.concatenate([[0], counts.cumsum()])
    held = np.minimum(up_to[end] - up_to[first], int(COVER * rows))
    lengths = (end - first).tolist()
    handicap = np.array([int(HANDICAP_SHARE * rows * log2(length)) for length in lengths])
    found: Integers = held - handicap
    return found


@cache
def windows(cells: int) -> tuple[Integers, Integers]:
    """The first cells and the ends of the windows on that many cells.

    Lengths grow by half. Neighbouring windows of a length start a quarter of it apart, at least one
    cell.
    """
    found = []
    for length in (*_lengths(cells), cells):
        last = cells - length
        starts = sorted({*range(0, last, max(1, length // 4)), last})
        found += [(start, start + length) for start in starts]
    first, end = np.array(found, dtype=np.int64).T
    return first, end


def _lengths(cells: int) -> Sequence[int]:
    lengths, length = [], 2
    while length < cells:
        lengths.append(length)
        length += max(1, length // 2)
    return lengths
