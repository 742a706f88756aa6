"""Pruning by released figures alone: post-processing, free of charge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.forest import LEAF, Tree


def impurity(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 − Σ_c p_c² of noisy `counts[..., class]`, negative counts taken as zero; 0 when empty."""
    present = np.clip(counts, 0, None).astype(np.float64)
    total = present.sum(axis=-1, keepdims=True)
    shares = np.divide(present, total, out=np.zeros_like(present), where=total > 0)
    return np.where(total[..., 0] > 0, 1.0 - (shares**2).sum(axis=-1), 0.0)


def prune_by_gini(tree: Tree, cells: Sequence[int]) -> Tree:
    """Fletcher & Islam 2015, (27): leaves no purer on average than their parent are removed.

    Needs noisy `counts` at every node. Children have higher numbers than their parents, so one pass
    from the last node to the first is the paper's rule repeated until nothing changes.
    """
    assert tree.counts is not None, "pruning by counts needs counts at every node"
    size = np.clip(tree.counts, 0, None).sum(axis=1)
    impure = impurity(tree.counts)
    closed = tree.kind == LEAF
    for node in reversed(range(tree.nodes)):
        children = list(tree.children(node, cells))
        if not children or not closed[children].all():
            continue
        total = size[children].sum()
        below = float((size[children] * impure[children]).sum() / total) if total else 0.0
        closed[node] = total == 0 or impure[node] <= below
    return tree.cut(closed, cells)
