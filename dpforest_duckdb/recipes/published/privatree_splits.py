"""How PrivaTree splits a node; the recipe is in `privatree.py`."""

from __future__ import annotations

import numpy as np

from dpforest_duckdb.splits.choose import NO_SPLIT, Choice, Drawn
from dpforest_duckdb.splits.utilities import published_gini


def by_private_histograms(choice: Choice) -> Drawn:
    """The split of least Gini in noisy histograms by class of every attribute (Vos et al. 2023).

    The histogram of each attribute has its part of ε; negative counts are set to 0. A split with an
    empty side by these counts is left out, and a node without another split stays a leaf.
    """
    splits, worth = choice.candidates, np.full(choice.allowed.shape, -np.inf)
    each, k = choice.epsilon // len(splits.cells), choice.rows_per_unit
    tables = [np.maximum(choice.noise.laplace(table, each, k), 0) for table in choice.counts]
    for a in range(len(splits.cells)):
        sides = splits.branch_counts(tables, a)
        held = (sides.sum(axis=3) > 0).all(axis=2)
        worth[:, splits.of(a)] = np.where(held, published_gini(sides), -np.inf)
    worth = np.where(choice.allowed, worth, -np.inf)
    return Drawn(np.where(np.isinf(worth.max(axis=1)), NO_SPLIT, worth.argmax(axis=1)))
