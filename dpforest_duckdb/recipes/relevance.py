"""How much an attribute tells of the class, by released figures alone: free of charge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpforest_duckdb.splits.utilities import symmetrical_uncertainty
from dpforest_duckdb.tree import LEAF, Tree


def relevance(trees: Sequence[Tree], cells: Sequence[int]) -> tuple[float, ...]:
    """A weight of each attribute: symmetrical uncertainty (thesis (4.24)) of noisy histograms.

    The mean over the nodes that an attribute splits, by their noisy rows, of what its children's
    histograms tell; added to the mean of all attributes, so that none is shut out. Alike where
    nothing is told. Needs noisy `counts` at every node of `trees`; `cells` is the domain's.
    """
    told, rows = np.zeros(len(cells)), np.zeros(len(cells))
    for tree in trees:
        assert tree.counts is not None, "relevance needs counts at every node"
        for node in np.flatnonzero(tree.kind != LEAF).tolist():
            table = np.clip(tree.counts[list(tree.children(node, cells))], 0, None)
            attribute = tree.attribute[node]
            told[attribute] += table.sum() * symmetrical_uncertainty(table)
            rows[attribute] += table.sum()
    each = told / np.maximum(rows, 1)
    weights = each + each.mean() if each.any() else np.ones(len(cells))
    return tuple(weights.tolist())
