"""The candidates of a draw of attributes: each numeric attribute in several bins.

Few bins over all of the public bounds are too coarse where most rows are in a part of them. So a
numeric attribute is a candidate in its own bins, and in as many bins that are narrow in a window of
the bounds, with one wide bin on each side of it. Windows are a half, a quarter and an eighth of a
public grid, and each overlaps the next one by half. An attribute is drawn together with its bins,
at the cost of one draw.

A numeric attribute is more candidates than a categorical one, and in narrow windows chance
classifies more rows. So a window has a public handicap for each time that the bounds are halved.
All candidates of an attribute are counted at once, in the cells that all their edges make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.privacy.noise import noise_scale

GRID = 128  # cells from which windows are made, half of equal width, half of equal width in asinh
HALVINGS = 3  # of the grid, to the smallest window
HALVING_HANDICAP = 2  # noise scales, for each halving
LARGEST = 2**60  # handicap: with it, utilities stay in 64 bits
AT_ONCE = 2**16  # values gathered for several options at once; more are slower, and need memory


@dataclass(frozen=True)
class Options:
    """The bins in which one attribute can be drawn; all options have equally many.

    `counted` is the attribute in the cells that are counted. `starts[option, bin]` is the first
    cell of each bin; "other" and NULL are bins of their own, as in the attribute. `edges[option]`
    are those of its numeric bins. An option's window is made by `halvings[option]` of the bounds: 0
    for the attribute's own bins, which come first.
    """

    counted: Attribute
    starts: Integers
    edges: Sequence[tuple[Any, ...]]
    halvings: Integers

    @property
    def count(self) -> int:
        return len(self.edges)

    def classified(self, counts: Integers) -> Integers:
        """By option, the rows that have the most frequent class of their bin.

        `counts[…, cell, class]`; with more dimensions, of their bin in each of these.
        """
        *outer, cells, classes = counts.shape
        up_to = np.zeros((*outer, cells + 1, classes), dtype=np.int64)
        counts.cumsum(axis=-2, out=up_to[..., 1:, :])
        bounds = np.concatenate([self.starts, np.full((self.count, 1), cells)], axis=1)
        values = math.prod(outer) * bounds.shape[1] * classes  # for one option
        step = max(1, AT_ONCE // max(1, values))
        found = []
        for first in range(0, self.count, step):
            some = bounds[first : first + step]
            merged = np.diff(up_to[..., some, :], axis=-2)  # […, option, bin, class]
            best = merged.max(axis=-1).sum(axis=-1)
            found.append(best.reshape(-1, len(some)).sum(axis=0))
        rows: Integers = np.concatenate(found)
        return rows

    def bins(self, option: int) -> Integers:
        """The bin of each `[cell]`."""
        inside = np.zeros(self.counted.cells, dtype=np.int64)
        inside[self.starts[option, 1:]] = 1
        return inside.cumsum()

    def handicaps(self, cost: int, sensitivity: int) -> Integers:
        """What is taken off each utility `[option]` in a draw at a cost in nano-ε. It is public."""
        one = min(int(HALVING_HANDICAP * noise_scale(cost, sensitivity)), LARGEST // HALVINGS)
        handicaps: Integers = self.halvings * one
        return handicaps


@dataclass(frozen=True)
class DrawnBins:
    """An attribute that was drawn: its number, and its bins."""

    number: int
    option: int


@dataclass(frozen=True)
class BinCandidates:
    """What can be drawn: the options of each attribute of a domain."""

    domain: Domain
    options: Sequence[Options]

    @property
    def counted(self) -> Domain:
        """The domain in the cells that are counted."""
        cells = tuple(options.counted for options in self.options)
        return replace(self.domain, attributes=cells)

    def in_bins(self, drawn: Sequence[DrawnBins]) -> Domain:
        """The domain in which drawn attributes have the bins that they were drawn in."""
        attributes = list(self.domain.attributes)
        for one in drawn:
            if one.option:
                edges = self.options[one.number].edges[one.option]
                attributes[one.number] = replace(attributes[one.number], edges=edges)
        return replace(self.domain, attributes=tuple(attributes))


def worth_drawing(domain: Domain) -> bool:
    """Whether attributes are drawn together with their bins: with numbers and several classes."""
    return len(domain.classes) > 2 and domain.has_numbers


def own_bins(domain: Domain) -> BinCandidates:
    """Every attribute in its own bins alone."""
    return BinCandidates(domain, [_own_bins(attribute) for attribute in domain.attributes])


def in_windows(domain: Domain, uncut: Domain) -> BinCandidates:
    """Every attribute in its own bins, and numeric ones in windows too.

    `uncut` is the domain before its numeric attributes got the bins that `domain` has. Attributes
    whose bins the domain file sets are in these alone.
    """
    pairs = zip(domain.attributes, uncut.attributes, strict=True)
    return BinCandidates(domain, [_in_windows(attribute, wide) for attribute, wide in pairs])


def _own_bins(attribute: Attribute) -> Options:
    return Options(
        attribute, np.arange(attribute.cells)[None], [attribute.edges], np.zeros(1, dtype=np.int64)
    )


def _in_windows(attribute: Attribute, wide: Attribute) -> Options:
    """An attribute in its own bins, and in windows of the grid of `wide`, if it has one."""
    grid = wide.recut(GRID)
    if grid == wide:
        return _own_bins(attribute)
    edges, halvings = [attribute.edges], [0]
    for cuts, times in _cuts_in_windows(attribute.proper, grid.proper):
        edges.append(tuple(grid.edges[cut - 1] for cut in cuts))
        halvings.append(times)
    every = sorted({edge for some in edges for edge in some})
    place = {edge: cell for cell, edge in enumerate(every, 1)}
    counted = replace(attribute, edges=tuple(every))
    rest = range(counted.proper, counted.cells)
    starts = [[0, *(place[edge] for edge in some), *rest] for some in edges]
    return Options(counted, np.array(starts), edges, np.array(halvings))


@cache
def _cuts_in_windows(bins: int, cells: int) -> list[tuple[tuple[int, ...], int]]:
    """Where that many bins are cut in each window of a grid of cells, and how often the bounds are
    halved for the window.

    Windows with too few cells for so many bins are left out.
    """
    found: dict[tuple[int, ...], int] = {}
    for halvings in range(1, HALVINGS + 1):
        last = 2 ** (halvings + 1) - 2
        for start in range(last + 1):  # in units of half a window
            inside = bins - (start > 0) - (start < last)
            divisor = 2 ** (halvings + 1) * max(inside, 1)
            places = {
                (2 * cells * (start * inside + 2 * part) + divisor) // (2 * divisor)
                for part in range(inside + 1)
            }
            cuts = tuple(sorted(places - {0, cells}))
            if inside > 0 and len(cuts) == bins - 1:
                found.setdefault(cuts, halvings)
    return list(found.items())
