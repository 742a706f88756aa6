"""Nodes of different trees that hold the same rows, of which only one needs to be counted.

Trees that all see all rows often begin with the same splits. Two nodes hold the same rows if the
same cells of each attribute lead to them. This depends on the splits alone, which are released.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.tree import MULTIWAY, branch_of


class SameNodes:
    """The cells that lead to each unsplit node; the roots are nodes 0 … `trees` - 1."""

    def __init__(self, cells: Sequence[int], trees: int) -> None:
        self._cells = cells
        self._starts = np.cumsum([0, *cells])
        self._reached = {tree: np.ones(sum(cells), np.bool_).tobytes() for tree in range(trees)}

    def follow(self, splits: Splits) -> None:
        """Replace split nodes by their children."""
        for node, attribute, kind, cell, first in zip(
            splits.node, splits.attribute, splits.kind, splits.cell, splits.first, strict=True
        ):
            above = np.frombuffer(self._reached.pop(node), np.bool_)
            size, start = self._cells[attribute], self._starts[attribute]
            branches = branch_of(np.array(kind), np.array(cell), np.arange(size))
            for branch in range(size if kind == MULTIWAY else 2):
                below = above.copy()
                below[start : start + size] &= branches == branch
                self._reached[first + branch] = below.tobytes()

    def pairs(self, nodes: Iterable[int]) -> Integers:
        """Pairs `[pair, 2]` of a node and an earlier one of `nodes` that holds the same rows."""
        seen: dict[bytes, int] = {}
        found = [
            (node, seen[reached])
            for node in nodes
            if (reached := self._reached.get(node)) is not None
            and seen.setdefault(reached, node) != node
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 2)
