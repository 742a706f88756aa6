"""How Rana et al. 2015 split a node, and when they do not; the recipe is in `rana_forest.py`.

NOT private: both read the true counts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.splits.choose import NO_SPLIT, Choice, Chooser, Drawn, values_of_each
from dpforest_duckdb.splits.utilities import information_gain_of
from dpforest_duckdb.tree import THRESHOLD


def by_class_means(choice: Choice) -> Drawn:
    """The attribute of largest gain, then its point from noisy means (thesis (4.7)).

    NOT private: the gain is that of true counts. So a node has one noisy query, of the classes'
    mean bins, and only if a threshold has the largest gain.
    """
    gain = values_of_each(choice, information_gain_of, np.float64)
    drawn = np.where(choice.allowed, gain, -np.inf).argmax(axis=1)
    splits = choice.candidates
    for a in splits.numeric:
        nodes = np.flatnonzero((splits.attribute[drawn] == a) & (splits.kind[drawn] == THRESHOLD))
        if len(nodes):
            drawn[nodes] = _nearest_to_class_means(choice.of(nodes), a)
    return Drawn(drawn)


def _nearest_to_class_means(choice: Choice, attribute: int) -> Integers:
    """The allowed threshold `[node]` that is nearest to the mean of the classes' mean bins.

    The sums have noise, with the number of bins as sensitivity per row. A class without rows in the
    node has no mean and is left out.
    """
    splits = choice.candidates
    cuts = splits.of(attribute)[splits.kind[splits.of(attribute)] == THRESHOLD]
    bins = np.arange(len(cuts) + 1)
    rows = choice.counts[attribute][:, : len(bins)]
    sums = (rows * bins[None, :, None]).sum(axis=1)
    sums = choice.noise.laplace(sums, choice.epsilon, len(bins) * choice.rows_per_unit)
    sizes = rows.sum(axis=1)  # [node, class]
    held = np.maximum((sizes > 0).sum(axis=1), 1)
    middle = np.where(sizes > 0, sums / np.maximum(sizes, 1), 0).sum(axis=1) / held
    edges = splits.cell[cuts] + 0.5  # a cut lies between the middles of two bins
    distance = abs(edges[None, :] - middle[:, None])
    nearest: Integers = cuts[np.where(choice.allowed[:, cuts], distance, np.inf).argmin(axis=1)]
    return nearest


def unless_a_child_is_small(chooser: Chooser, least: Callable[[Choice], int]) -> Chooser:
    """The chooser, except that a node stays a leaf if a child would have fewer than `least` rows.

    A child without any row does not count, but a node without any row stays a leaf. NOT private: it
    depends on the true counts.
    """

    def choose(choice: Choice) -> Drawn:
        splits, drawn = choice.candidates, chooser(choice).candidate.copy()
        for a in np.unique(splits.attribute[drawn[drawn != NO_SPLIT]]).tolist():
            nodes = np.flatnonzero((drawn != NO_SPLIT) & (splits.attribute[drawn] == a))
            of_all = splits.branch_counts([table[nodes] for table in choice.counts], a)
            place = np.searchsorted(splits.of(a), drawn[nodes])
            rows = of_all[np.arange(len(nodes)), place].sum(axis=2)  # [node, branch]
            small = ((rows < least(choice)) & (rows > 0)).any(axis=1) | ~rows.any(axis=1)
            drawn[nodes[small]] = NO_SPLIT
        return Drawn(drawn)

    return choose
