"""Class probabilities from noisy counts: post-processing, free of charge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.forest import LEAF, Tree

Number = TypeVar("Number", np.int64, np.float64)


def sum_upward(tree: Tree, cells: Sequence[int]) -> Tree:
    """Noisy counts of inner nodes as the sums of their leaves' noisy counts."""
    assert tree.counts is not None, "only counts can be summed"
    assert tree.noise is not None, "counts come with their noise"
    inner = tree.kind != LEAF
    counts = _added_up(tree, cells, np.where(inner[:, None], 0, tree.counts))
    variance = _added_up(tree, cells, np.where(inner, 0.0, tree.noise**2))
    return replace(tree, counts=counts, noise=np.sqrt(variance))


def _added_up(tree: Tree, cells: Sequence[int], values: NDArray[Number]) -> NDArray[Number]:
    """Figures of leaves `[node, …]`, added to those of all nodes above, which were zero."""
    summed = values.copy()
    for nodes in reversed(tree.levels(cells)[:-1]):
        children, parents = tree.below(nodes, cells)
        np.add.at(summed, parents, summed[children])
    return summed


def shrink_to_parent(tree: Tree, cells: Sequence[int], noise: float) -> NDArray[np.float64]:
    """Class shares `[node, class]`, each drawn towards the parent's as far as noise is in it.

    `noise` is the standard deviation of one leaf count. A node whose counts sum `k` leaves has a
    noise of √k·noise in each class; that many rows of the parent's shares are added to it, so an
    empty node takes its parent's shares and a large one keeps its own. The root leans on equal
    shares.
    """
    assert tree.counts is not None, "only counts can be smoothed"
    classes = tree.counts.shape[1]
    leaves = _added_up(tree, cells, (tree.kind == LEAF).astype(np.float64))
    weight = (noise * np.sqrt(leaves * classes) + 1.0)[:, None]
    own = np.clip(tree.counts, 0, None)
    shares = np.full(own.shape, 1 / classes)
    parents = tree.parents(cells)
    for nodes in tree.levels(cells):
        above = shares[np.maximum(parents[nodes], 0)]
        total = own[nodes].sum(axis=1, keepdims=True) + weight[nodes]
        shares[nodes] = (own[nodes] + weight[nodes] * above) / total
    return shares
