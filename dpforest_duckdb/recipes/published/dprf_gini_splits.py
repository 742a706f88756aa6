"""How DPRF-Gini splits a node; the recipe is in `dprf_gini.py`."""

from __future__ import annotations

import numpy as np

from dpforest_duckdb.arrays import Mask
from dpforest_duckdb.privacy.sampler import LIMIT
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.splits.choose import Choice, Chooser, Drawn, exponents_of, values_of_each
from dpforest_duckdb.splits.utilities import Utility


def by_best_points(utility: Utility) -> Chooser:
    """The best split of each attribute, by the true counts, then a draw among the attributes.

    Li & Li 2017, thesis (4.6) and (4.20). NOT private: the best points are not paid for.
    """

    def choose(choice: Choice) -> Drawn:
        splits, best = choice.candidates, np.zeros_like(choice.allowed)
        worth = values_of_each(choice, utility.function, np.int64)
        for a in range(len(splits.cells)):
            listed = splits.of(a)
            if len(listed):
                place = np.where(choice.allowed[:, listed], worth[:, listed], -LIMIT).argmax(axis=1)
                best[np.arange(len(best)), listed[place]] = True
        best &= choice.allowed
        exponent = exponents_of(choice, utility, best, choice.epsilon)
        return Drawn(EXPONENTIAL.draw(exponent, best, choice.bits))

    return choose


def where_points_are_left(chooser: Chooser, otherwise: Chooser) -> Chooser:
    """One chooser if an attribute of the node has several splits, else the other; public."""

    def choose(choice: Choice) -> Drawn:
        splits = choice.candidates
        counted = np.stack(
            [choice.allowed[:, splits.of(a)].sum(axis=1) for a in range(len(splits.cells))]
        )
        several: Mask = np.asarray((counted > 1).any(axis=0))
        drawn = np.empty(len(several), dtype=np.int64)
        for nodes, draw in (
            (np.flatnonzero(several), chooser),
            (np.flatnonzero(~several), otherwise),
        ):
            if len(nodes):
                drawn[nodes] = draw(choice.of(nodes)).candidate
        return Drawn(drawn)

    return choose
