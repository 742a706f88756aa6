"""Nodes of different trees that hold the same rows, of which only one needs to be counted.

Trees that all see all rows often begin with the same splits. Two nodes hold the same rows if the
same cells of each attribute lead to them. This depends on the splits alone, which are released.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.tree import MULTIWAY, THRESHOLD


class SameNodes:
    """The cells that lead to each unsplit node; the roots are nodes 0 … `trees` - 1.

    A node has them for the attributes that are split above it, as the bits of a whole number.
    There may be a hundred thousand nodes, and as many cells in all.
    """

    def __init__(self, cells: Sequence[int], trees: int) -> None:
        self._cells = cells
        self._reached: dict[int, dict[int, int]] = {tree: {} for tree in range(trees)}

    def follow(self, splits: Splits) -> None:
        """Replace split nodes by their children."""
        for node, attribute, kind, cell, first in zip(
            splits.node, splits.attribute, splits.kind, splits.cell, splits.first, strict=True
        ):
            above = self._reached.pop(node)
            reached = above.get(attribute, (1 << self._cells[attribute]) - 1)
            for branch, held in enumerate(_branches(kind, cell, self._cells[attribute])):
                self._reached[first + branch] = {**above, attribute: reached & held}

    def pairs(self, nodes: Iterable[int]) -> Integers:
        """Pairs `[pair, 2]` of a node and an earlier one of `nodes` that holds the same rows."""
        seen: dict[frozenset[tuple[int, int]], int] = {}
        found = [
            (node, seen[cells])
            for node in nodes
            if (reached := self._reached.get(node)) is not None
            and seen.setdefault(cells := frozenset(reached.items()), node) != node
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 2)


def _branches(kind: int, cell: int, cells: int) -> list[int]:
    """The cells of an attribute that go to each branch of a split, as bits; as `branch_of`."""
    if kind == MULTIWAY:
        return [1 << branch for branch in range(cells)]
    first = (2 << cell) - 1 if kind == THRESHOLD else 1 << cell
    return [first, ~first]
