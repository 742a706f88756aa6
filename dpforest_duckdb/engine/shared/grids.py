"""Arrays in public shapes, filled from what an engine counts: the same for every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers


def in_dimensions(positions: Mapping[int, Integers]) -> list[tuple[int, list[int]]]:
    """Each dimension of `positions[attribute][code, dimension]`: its attribute, and its codes'
    positions.
    """
    return [(number, values) for number, each in positions.items() for values in each.T.tolist()]


def dense(keys: Sequence[Integers], rows: Integers, shape: tuple[int, ...]) -> Integers:
    """The full public grid with empty cells filled in: groups that GROUP BY leaves out need noise
    too.
    """
    counts = np.zeros(shape, dtype=np.int64)
    counts[tuple(np.asarray(key, dtype=np.int64) for key in keys)] = rows
    return counts


def by_tree(
    nodes: Sequence[int], tree: Integers, node: Integers, parts: Sequence[Integers]
) -> list[Integers]:
    """Per tree, which has so many `nodes`, the dense `sums[node, part]`: group i is at `node[i]` of
    `tree[i]`.
    """
    sums = [np.zeros((size, len(parts)), dtype=np.int64) for size in nodes]
    for number, dense_sums in enumerate(sums):
        mine = tree == number
        dense_sums[np.asarray(node[mine])] = np.stack([part[mine] for part in parts], axis=1)
    return sums


def symmetric(size: int, most: int, values: Callable[[list[list[int]]], Sequence[int]]) -> Integers:
    """A symmetric matrix, by the `values` at up to `most` places [row, column] at a time."""
    matrix = np.zeros((size, size), dtype=np.int64)
    upper = np.transpose(np.triu_indices(size)).tolist()
    for start in range(0, len(upper), most):
        places = upper[start : start + most]
        one, other = np.transpose(places)
        matrix[one, other] = matrix[other, one] = values(places)
    return matrix


def scored_classes(classes: int) -> range:
    """The classes that have a score: each of them, or the second of two."""
    return range(classes) if classes > 2 else range(1, 2)


def scores_of(votes: Integers) -> list[Integers]:
    """What `votes[node, class]` add to each score; for two classes, the difference of the two."""
    return [votes[:, 1] - votes[:, 0]] if votes.shape[1] == 2 else list(votes.T)
