"""Class probabilities from noisy counts: post-processing, which costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.tree import LEAF, Tree, counts_of, noise_of

Descents = Sequence[tuple[Integers, Integers]]  # children, parents, by depth
Number = TypeVar("Number", np.int64, np.float64)


def sum_upward(tree: Tree, cells: Sequence[int]) -> Tree:
    """Set the noisy counts of inner nodes to the sums of their leaves' noisy counts."""
    inner, descents = tree.kind != LEAF, tree.descents(cells)
    counts = add_upward(descents, np.where(inner[:, None], 0, counts_of(tree)))
    variance = add_upward(descents, np.where(inner, 0.0, noise_of(tree) ** 2))
    return replace(tree, counts=counts, noise=np.sqrt(variance))


def add_upward(descents: Descents, values: NDArray[Number]) -> NDArray[Number]:
    """The figures `[node, …]`, with those of the leaves added to all nodes above, which are 0."""
    summed = values.copy()
    for children, parents in reversed(descents):
        np.add.at(summed, parents, summed[children])
    return summed


def leaves_below(tree: Tree, descents: Descents) -> Floats:
    """The number of leaves below each `[node]`; 1 for a leaf."""
    return add_upward(descents, (tree.kind == LEAF).astype(np.float64))


def shrink_to_parent(tree: Tree, cells: Sequence[int], noise: float) -> Floats:
    """Class shares `[node, class]`, each moved towards the parent's share by the noise in it.

    `noise` is the standard deviation of one leaf count. If the counts of a node are sums over `k`
    leaves, their noise is √k·noise in each class, √(k C)·noise over all C classes. As many rows,
    and one more, with the parent's shares are added to the node: an empty node gets its parent's
    shares, and a large one keeps its own. The root is moved towards equal shares.
    """
    counts, descents = np.clip(counts_of(tree), 0, None), tree.descents(cells)
    classes = counts.shape[1]
    leaves = leaves_below(tree, descents)
    weight = (noise * np.sqrt(leaves * classes) + 1.0)[:, None]
    total = counts.sum(axis=1, keepdims=True) + weight
    shares: Floats = (counts + weight / classes) / total
    for children, parents in descents:
        added = counts[children] + weight[children] * shares[parents]
        shares[children] = added / total[children]
    return shares
