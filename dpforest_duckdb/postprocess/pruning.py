"""Pruning by released figures only: post-processing, which costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.postprocess.shrinkage import leaves_below
from dpforest_duckdb.tree import LEAF, Tree, counts_of, noise_of


def impurity(counts: Integers) -> Floats:
    """1 − Σ_c p_c² of noisy `counts[..., class]`, with negative counts as zero; 0 if empty."""
    present = np.clip(counts, 0, None).astype(np.float64)
    total = present.sum(axis=-1, keepdims=True)
    shares = np.divide(present, total, out=np.zeros_like(present), where=total > 0)
    return np.where(total[..., 0] > 0, 1.0 - (shares**2).sum(axis=-1), 0.0)


def prune_by_gini(tree: Tree, cells: Sequence[int]) -> Tree:
    """Fletcher & Islam 2015, (27): remove leaves that are on average no purer than their parent.

    Needs noisy `counts` at every node. Children have higher numbers than their parents, so one pass
    from the last node to the first is the same as the paper's rule repeated until nothing changes.
    """
    counts = counts_of(tree)
    size, impure = np.clip(counts, 0, None).sum(axis=1), impurity(counts)
    closed = tree.kind == LEAF
    for node in reversed(range(tree.nodes)):
        children = list(tree.children(node, cells))
        if not children or not closed[children].all():
            continue
        total = size[children].sum()
        below = float((size[children] * impure[children]).sum() / total) if total else 0.0
        closed[node] = total == 0 or impure[node] <= below
    return tree.cut(closed, cells)


def prune_by_error(tree: Tree, cells: Sequence[int]) -> Tree:
    """C4.5's rule: remove a subtree that is not expected to err less than its root as a leaf.

    The errors are those of noisy counts at the upper end of a 25 % confidence interval (z = .69),
    summed over the leaves; a leaf without a count above 0 has none. Needs noisy `counts` at every
    node.
    """
    z = 0.69
    present = np.clip(counts_of(tree), 0, None).astype(np.float64)
    rows = present.sum(axis=1)
    size = np.maximum(rows, 1.0)
    share = 1 - present.max(axis=1) / size
    spread = z * np.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    errors = size * (share + z * z / (2 * size) + spread) / (1 + z * z / size)
    errors[rows == 0] = 0.0
    below, closed = errors.copy(), tree.kind == LEAF
    for node in reversed(range(tree.nodes)):
        children = list(tree.children(node, cells))
        if children:
            below[node] = below[children].sum()
            if below[node] >= errors[node]:
                below[node], closed[node] = errors[node], True
    return tree.cut(closed, cells)


def prune_by_signal(tree: Tree, cells: Sequence[int], noise: float) -> Tree:
    """Undo splits whose children all have more noise than signal: SNR < 1, thesis (4.39).

    Fletcher & Islam 2015b; (4.40) prints √2 × |Leafs| where this has √(2 |Leafs|). Needs noisy
    `counts` summed upward; `noise` is the standard deviation of one count, √2/ε.
    """
    counts, descents = counts_of(tree), tree.descents(cells)
    leaves = leaves_below(tree, descents)
    gone = counts.sum(axis=1) < noise * counts.shape[1] * np.sqrt(leaves)
    closed = tree.kind == LEAF
    for children, parents in reversed(descents):
        stays = np.zeros(tree.nodes, dtype=np.bool_)
        np.logical_or.at(stays, parents, ~gone[children])
        inner = np.unique(parents)
        closed[inner] = ~stays[inner]
        gone[inner] &= ~stays[inner]
    gone[0] = False
    empty = gone & closed
    known = replace(
        tree,
        counts=np.where(empty[:, None], 0, counts),
        noise=np.where(empty, np.nan, noise_of(tree)),
    )
    return known.cut(closed, cells)
