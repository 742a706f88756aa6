"""Narrower bounds for numeric attributes whose public bounds are far too wide.

If nearly all rows are in one public bin, an attribute says nothing. So a noisy figure first tells
how many rows the fullest bin of an attribute holds, on average. If that is more than half of them,
a window on the public bins is drawn for each attribute. Windows are 1, 2, 4, … bins long. The
utility of a window is the number of its rows, minus a public handicap for each doubling of its
length. One row adds at most one to any of them, and takes nothing away, so utilities are monotone.
A window of up to four bins is cut into bins for the next turn, in which a window on these is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.bin_edges import DEFAULT_BINS
from dpforest_duckdb.domain.values import ordinal
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners.private_bins import FINEST, on_the_grid, to_be_cut
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.measure import Measure
from dpforest_duckdb.privacy.noise import CountNoise, noise_scale
from dpforest_duckdb.splits.choose import draw_best

BOUNDS_TURNS = 6  # each finds bounds about four to thirty times narrower, near 0 far more
SHORT = 4  # bins: a window of no more is cut into bins again
DOUBLING_HANDICAP = 2  # noise scales, for each doubling of a window's length
ERRORS = 1 / 100  # how often noise may mislead the check, or a window


def clear_check() -> float:
    """n / noise scale at which the check errs by a quarter of the rows in ERRORS of all cases."""
    return 4 * math.log(1 / 2 / ERRORS)


@cache
def clear_window() -> float:
    """n / noise scale at which a window that is worth n / 2 less than the best one is drawn in
    about ERRORS of all cases, at most.
    """
    return 2 * math.log(len(_bounds_windows(DEFAULT_BINS)[0]) / ERRORS)


def public_bins(domain: Domain) -> Domain:
    """The domain of the numeric attributes without declared bins, in the bins of the check.

    Raises `DpforestError` if there is none.
    """
    return on_the_grid(domain, DEFAULT_BINS)


def too_wide(
    domain: Domain, counts: Sequence[Integers], rows: int, cost: int, k: int, noise: CountNoise
) -> bool:
    """Whether the fullest bin of an attribute holds more than half of the rows, on average.

    `counts[attribute][bin]` are private, in the bins of `domain`; `rows` is a noisy number, `cost`
    nano-ε, k the rows per unit. A row more changes the fullest bin of each attribute by at most
    one.
    """
    bins = [table[: a.proper] for table, a in zip(counts, domain.attributes, strict=True)]
    fullest = np.array([sum(int(table.max()) for table in bins)])
    noisy = noise.laplace(fullest, cost, k * len(bins))
    return bool(2 * noisy[0] > len(bins) * rows)


@dataclass(frozen=True)
class Search:
    """What is known of the bounds after some turns; released.

    `public` is the domain before. `found` are attributes with narrower bounds, `open` those whose
    rows are in a window so short that it is cut into bins again.
    """

    public: Domain
    open: tuple[Attribute, ...]
    found: tuple[Attribute, ...] = ()

    @staticmethod
    def start(public: Domain) -> Search:
        """The search in which all numeric attributes without declared bins are open."""
        return Search(public, tuple(to_be_cut(public)))

    @property
    def domain(self) -> Domain:
        """The domain with the narrower bounds.

        Attributes that stayed open keep the public ones. Usually most of their rows have the same
        value.
        """
        found = {a.name: a for a in self.found}
        attributes = tuple(found.get(a.name, a) for a in self.public.attributes)
        return replace(self.public, attributes=attributes)

    @property
    def bins(self) -> Domain:
        """The domain of the open attributes in the bins that are counted next."""
        return public_bins(replace(self.public, attributes=self.open))

    def turn(
        self, counts: Sequence[Integers], cost: int, measure: Measure, k: int, bits: Bits
    ) -> Search:
        """The search after a window is drawn for each open attribute, at that cost each.

        `counts[attribute][cell]` are private, in `bins`; k is the rows per unit.
        """
        still_open, found = [], [*self.found]
        for table, attribute in zip(counts, self.bins.attributes, strict=True):
            first, end = _draw_window(table[: attribute.proper], cost, measure, k, bits)
            inside = _inside(attribute, first, end)
            if inside is None:
                continue
            if end - first > SHORT:
                found.append(inside)
            elif inside.recut(FINEST) != inside:
                still_open.append(inside)
            elif inside.proper > 2:  # a few whole numbers, with a bin each
                found.append(inside)
        return replace(self, open=tuple(still_open), found=tuple(found))


def _inside(attribute: Attribute, first: int, end: int) -> Attribute | None:
    """The attribute within the bounds of some bins; None if they are too narrow, or too near to the
    limits of its type, for bins of their own. Such an attribute keeps its public bounds.
    """
    try:
        inside = attribute.between(first, end)
        inside.recut(FINEST)
    except (DpforestError, ArithmeticError):
        return None
    lower, upper = (ordinal(bound, attribute.family) for bound in (inside.lower, inside.upper))
    return inside if lower < upper else None


def _draw_window(
    counts: Integers, cost: int, measure: Measure, k: int, bits: Bits
) -> tuple[int, int]:
    """The first bin and the end of a window on bins with private `counts[bin]`."""
    epsilon = measure.drawn_epsilon(cost)
    first, end, _ = _bounds_windows(len(counts))
    utility = bounds_window_utilities(counts, int(DOUBLING_HANDICAP * noise_scale(epsilon, k)))
    window = draw_best(utility, epsilon, k, bits, measure.mechanism)
    return int(first[window]), int(end[window])


def bounds_window_utilities(counts: Integers, handicap: int) -> Integers:
    """The utility `[window]`: its rows minus `handicap` for each doubling of its length.

    `counts[bin]` are private. One more row raises it by 0 or 1: sensitivity 1, monotone.
    """
    first, end, doublings = _bounds_windows(len(counts))
    up_to = np.concatenate([[0], counts.cumsum()])
    found: Integers = up_to[end] - up_to[first] - doublings * handicap
    return found


@cache
def _bounds_windows(bins: int) -> tuple[Integers, Integers, Integers]:
    """First bin, end and doublings `[window]` of all windows on that many bins; a window overlaps
    the next one by half.
    """
    found = []
    for doublings in range(math.ceil(math.log2(bins)) + 1):
        length = 2**doublings
        starts = range(0, max(bins - length // 2, 1), max(length // 2, 1))
        found += [(start, min(start + length, bins), doublings) for start in starts]
    first, end, doubled = np.array(found, dtype=np.int64).T
    return first, end, doubled
