"""Choosing a split in every open node of a depth at once: utilities, then a private draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.selection import Exponents, Mechanism, exponents, select
from dpforest_duckdb.splits.candidates import Candidates, Counts, Mask
from dpforest_duckdb.splits.utilities import Utility, published_gini, published_sensitivity


@dataclass(frozen=True)
class Choice:
    """What a draw is made from: the open nodes of a depth.

    `counts`: private, per attribute `[node, value, class]`. `allowed[node, candidate]` and
    `epsilon` (nano, per node) are public. `histogram[node, class]` is noisy, or None where the
    recipe asks no histogram of a node.
    """

    candidates: Candidates
    counts: Sequence[Counts]
    allowed: Mask
    histogram: Counts | None
    epsilon: int
    rows_per_unit: int
    bits: Bits

    def of(self, nodes: NDArray[np.int64]) -> Choice:
        """The same for some of the nodes."""
        return replace(
            self,
            counts=[table[nodes] for table in self.counts],
            allowed=self.allowed[nodes],
            histogram=None if self.histogram is None else self.histogram[nodes],
        )


Chooser = Callable[[Choice], NDArray[np.int64]]
Number = TypeVar("Number", np.int64, np.float64)


def by_utility(utility: Utility, mechanism: Mechanism) -> Chooser:
    """A draw by an integer utility; its sensitivity is scaled by the rows per privacy unit.

    A unit's rows may lie in several nodes: the loss of each is in proportion to its rows there, so
    all nodes of a depth together cost one ε.
    """

    def choose(choice: Choice) -> NDArray[np.int64]:
        weights = exponents(
            _each(choice, utility.function, np.int64),
            choice.allowed,
            choice.epsilon,
            utility.sensitivity * choice.rows_per_unit,
            monotone=utility.monotone,
        )
        return select(mechanism, weights, choice.allowed, choice.bits)

    return choose


def by_published_gini(choice: Choice) -> NDArray[np.int64]:
    """Fletcher & Islam 2015, (8) with Theorem 1's sensitivity of the noisy size: NOT private.

    P(a) ∝ exp(ε·G(a) / (2·Δ(G_n))), G of (4), n of line 15; exponents rounded to 2^-20.
    """
    assert choice.histogram is not None, "the published sensitivity needs noisy histograms"
    gini = _each(choice, published_gini, np.float64)
    size = np.maximum(choice.histogram.sum(axis=1), 1)
    best = np.where(choice.allowed, gini, -np.inf).max(axis=1, keepdims=True)
    gap = np.where(choice.allowed, best - gini, 0.0)
    exponent = choice.epsilon / 1e9 * gap / (2 * published_sensitivity(size))[:, None]
    parts = np.rint(np.minimum(exponent, 2.0**30) * 2**20).astype(np.int64)
    return select("exponential", Exponents(parts, 2**20), choice.allowed, choice.bits)


def _each(
    choice: Choice, function: Callable[[Counts], NDArray[Number]], dtype: type[Number]
) -> NDArray[Number]:
    """A utility of every candidate, `[node, candidate]`, attribute by attribute."""
    values: NDArray[Number] = np.zeros(choice.allowed.shape, dtype=dtype)
    for attribute in range(len(choice.counts)):
        own = choice.candidates.of(attribute)
        if len(own):
            values[:, own] = function(choice.candidates.branch_counts(choice.counts, attribute))
    return values
