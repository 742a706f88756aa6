"""The leaf of a tree that a row falls into, as one expression on the row's cells.

A walk from the root names the node of a row several times in each step, so Spark's plan of it would
double with each depth. Bit sets need no steps: a cell excludes the leaves behind the other branches
of each split on its attribute, and one leaf is left (see `dpforest_duckdb.scoring.quickscorer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree, branch_of

BITS = 63  # of a word; the last of 64 is the sign

Numbers = Callable[[Sequence[int], str], Sql]  # a constant array of a type


class Leaves:
    """Writes the leaf of a row of `cells`, which have one number for all attributes."""

    def __init__(self, cells: Sequence[int], numbers: Numbers) -> None:
        self._cells, self._numbers = cells, numbers
        self._offsets = np.cumsum([0, *cells])
        self.total = int(self._offsets[-1])

    def node(self, tree: Tree) -> Sql:
        """The number of the leaf of a row."""
        return self._grid(tree) or self._by_words(tree)

    def lookups(self, tree: Tree) -> int:
        """About how many constants the expression looks up, which says how long its code is."""
        words = -(-len(tree.leaves) // BITS)
        return words * (1 + len(np.unique(tree.attribute[tree.kind != LEAF])))

    def votes_of_cells(self, tree: Tree) -> Integers | None:
        """`votes[cell, class]` by the number of a cell, if a tree only splits into the values of
        one attribute; else None.
        """
        if tree.kind[0] != MULTIWAY or (tree.kind[1:] != LEAF).any():
            return None
        low, high = self._offsets[tree.attribute[0] :][:2]
        votes = np.zeros((self.total, tree.votes.shape[1]), dtype=np.int64)
        votes[low:high] = tree.votes[tree.first[0] :][: high - low]
        return votes

    def _grid(self, tree: Tree) -> Sql | None:
        """The leaf as a sum of cells, if all nodes of a depth split by all values of the same
        attribute, and leaves are numbered in the order of the values.
        """
        nodes, number = np.array([0]), ""
        while (tree.kind[nodes] == MULTIWAY).all():
            attribute, first = int(tree.attribute[nodes[0]]), int(tree.first[nodes[0]])
            size = self._cells[attribute]
            alike = (tree.attribute[nodes] == attribute).all()
            if not alike or (np.diff(tree.first[nodes]) != size).any():
                return None
            cell = f"get(`cells`, {attribute}) - {self._offsets[attribute]}"
            number = f"({number}) * {size} + {cell}" if number else cell
            nodes = first + np.arange(len(nodes) * size)
        if not (tree.kind[nodes] == LEAF).all():
            return None
        return Sql(f"{number or 0} + {nodes[0]}")

    def _by_words(self, tree: Tree) -> Sql:
        """The leaf that all cells of a row allow, in words of `BITS` leaves that lie together."""
        leaves, allowed = self._allowed(tree)
        found = []
        for start in range(0, len(leaves), BITS):
            word = f"bit_count(({self._word(allowed[start : start + BITS])}) - 1)"
            numbers = self._numbers(leaves[start : start + BITS].tolist(), "INT")
            found.append(f"get({numbers}, {word})")  # NULL for an empty word, which has 64 bits
        return Sql(found[0] if len(found) == 1 else f"coalesce({', '.join(found)})")

    def _word(self, allowed: NDArray[np.bool_]) -> str:
        """The leaves of a word that all cells of a row allow, as a bit set."""
        bits = np.int64(1) << np.arange(len(allowed), dtype=np.int64)
        terms = []
        for attribute, (low, high) in enumerate(
            zip(self._offsets[:-1], self._offsets[1:], strict=True)
        ):
            of_attribute = allowed[:, low:high]
            if not of_attribute.all():
                sets = self._numbers((bits @ of_attribute).tolist(), "BIGINT")
                terms.append(f"get({sets}, get(`cells`, {attribute}) - {low})")
        return " & ".join(terms)

    def _allowed(self, tree: Tree) -> tuple[Integers, NDArray[np.bool_]]:
        """The leaves, those of a subtree together, and `allowed[leaf, cell]`."""
        allowed = np.ones((tree.nodes, self.total), dtype=np.bool_)
        path = np.zeros((tree.nodes, self._depth(tree)), dtype=np.int64)
        attribute_of = np.repeat(np.arange(len(self._cells)), self._cells)
        code = np.arange(self.total) - self._offsets[attribute_of]
        for depth, (nodes, above) in enumerate(tree.descents(self._cells)):
            branch = nodes - tree.first[above]
            goes = (
                branch_of(tree.kind[above, None], tree.cell[above, None], code) == branch[:, None]
            )
            elsewhere = attribute_of != tree.attribute[above, None]
            allowed[nodes] = allowed[above] & (goes | elsewhere)
            path[nodes] = path[above]
            path[nodes, depth] = branch
        leaves = tree.leaves
        together = leaves[np.lexsort(path[leaves].T[::-1])]
        return together, allowed[together]

    def _depth(self, tree: Tree) -> int:
        return tree.depth(self._cells)
