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
from dataclasses import dataclass
from functools import cache
from math import log2

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.splits.table_codes import Code, code_of

REACH = 100  # the largest position; the noise of products must stay within the sampler's limits
FEW_CELLS = 8  # an attribute of no more has no window: all its cells are used
COVER = 0.9  # of the rows: a window that holds more is not better
HANDICAP_SHARE = 0.06  # of the rows, for each doubling of a window's length


@dataclass(frozen=True)
class Positions:
    """The positions of an attribute's cells, without zeros: `values[i]` is that of `cells[i]` in
    `dimensions[i]`, and `shape` is the number of cells and of dimensions.

    With zeros, an attribute of many categories, each a dimension, would take too much memory.
    """

    shape: tuple[int, int]
    cells: Integers
    dimensions: Integers
    values: Integers

    @staticmethod
    def of(table: Integers) -> Positions:
        """Those of a table `[cell, dimension]`."""
        cells, dimensions = table.nonzero()
        return Positions(table.shape, cells, dimensions, table[cells, dimensions])

    @property
    def table(self) -> Integers:
        """All of them, as `[cell, dimension]`."""
        table = np.zeros(self.shape, dtype=np.int64)
        table[self.cells, self.dimensions] = self.values
        return table

    def sums(self, private: Integers) -> Integers:
        """The sums `[dimension, class]` over the rows of private counts `[cell, class]`."""
        return self._added(self.values, private)

    def square_sums(self, private: Integers) -> Integers:
        """The sums `[dimension]` of 2x² - REACH², which is between ± REACH², over the rows of
        private counts `[cell]`.
        """
        squares = self._added(self.values**2, private[:, None])[:, 0]
        found: Integers = 2 * squares - REACH**2 * private.sum()
        return found

    def weighed(self, weights: Floats) -> Floats:
        """The sums `[cell, class]` of positions, in parts of REACH, times the weights of their
        dimensions, `[dimension, class]`.
        """
        found = np.zeros((self.shape[0], weights.shape[1]))
        np.add.at(found, self.cells, self.values[:, None] / REACH * weights[self.dimensions])
        return found

    def _added(self, values: Integers, private: Integers) -> Integers:
        sums = np.zeros((self.shape[1], private.shape[1]), dtype=np.int64)
        np.add.at(sums, self.dimensions, values[:, None] * private[self.cells])
        return sums


def has_window(attribute: Attribute) -> bool:
    """Whether a window is drawn for an attribute: for numbers of more than a few cells."""
    return attribute.kind == "numeric" and attribute.proper > FEW_CELLS


def blocks(attribute: Attribute) -> tuple[int, ...]:
    """The dimensions of each block of an attribute's positions."""
    return (1,) if attribute.in_order else code_of(attribute).blocks


def positions(attribute: Attribute, window: tuple[int, int] | None = None) -> Positions:
    """The positions of an attribute's cells, at most REACH.

    `window` is its first cell and its end; all described cells by default.
    """
    if not attribute.in_order:
        return _unordered(code_of(attribute), attribute.cells)
    first, end = window or (0, attribute.proper)
    steps = max(end - first - 1, 1)
    place = np.clip(np.arange(attribute.proper) - first, 0, end - first - 1)
    found = np.zeros((attribute.cells, 1), dtype=np.int64)
    if end - first > 1:
        found[: attribute.proper, 0] = np.rint((2 * place / steps - 1) * REACH)
    return Positions.of(found)


def _unordered(code: Code, cells: int) -> Positions:
    """The contrasts of a code, or a dimension for each of its values."""
    described = np.array(code.values)
    if code.by_contrasts:
        table = np.zeros((cells, code.signs.shape[1]), dtype=np.int64)
        table[described] = code.signs * REACH
        return Positions.of(table)
    reach = np.full(len(described), REACH)
    return Positions((cells, len(described)), described, np.arange(len(described)), reach)


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
