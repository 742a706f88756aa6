"""Class probabilities from noisy counts: post-processing, free of charge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.forest import Tree


def sum_upward(tree: Tree, cells: Sequence[int]) -> Tree:
    """Noisy counts of inner nodes as the sums of their leaves' noisy counts."""
    assert tree.counts is not None, "only counts can be summed"
    assert tree.noise is not None, "counts come with their noise"
    counts, noise = tree.counts.copy(), tree.noise.copy()
    for node in reversed(range(tree.nodes)):
        children = list(tree.children(node, cells))
        if children:
            counts[node] = counts[children].sum(axis=0)
            noise[node] = np.sqrt((noise[children] ** 2).sum())
    return replace(tree, counts=counts, noise=noise)


def shrink_to_parent(tree: Tree, cells: Sequence[int], noise: float) -> NDArray[np.float64]:
    """Class shares `[node, class]`, each drawn towards the parent's as far as noise is in it.

    `noise` is the standard deviation of one leaf count. A node whose counts sum `k` leaves has a
    noise of √k·noise in each class; that many rows of the parent's shares are added to it, so an
    empty node takes its parent's shares and a large one keeps its own. The root leans on equal
    shares.
    """
    assert tree.counts is not None, "only counts can be smoothed"
    classes = tree.counts.shape[1]
    leaves = np.ones(tree.nodes)
    for node in reversed(range(tree.nodes)):
        children = list(tree.children(node, cells))
        if children:
            leaves[node] = leaves[children].sum()
    parents = tree.parents(cells)
    shares = np.empty((tree.nodes, classes))
    for node in range(tree.nodes):
        above = shares[parents[node]] if parents[node] >= 0 else np.full(classes, 1 / classes)
        weight = noise * np.sqrt(leaves[node] * classes) + 1.0
        own = np.clip(tree.counts[node], 0, None)
        shares[node] = (own + weight * above) / (own.sum() + weight)
    return shares
