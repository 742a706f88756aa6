"""The node that a row reaches from a root, as one expression on its codes.

Walking down a tree would name the node of a row several times in each step, so Spark's plan would
double with each depth. Bit sets need no steps. Each code excludes the nodes that its value cannot
reach, and the one node that no code excludes is the row's (see
`dpforest_duckdb.scoring.quickscorer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.engine.spark.layout import Layout
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree, branch_of

BITS = 63  # of a word; the last of 64 is the sign

Numbers = Callable[[Sequence[int], str], Sql]  # a constant array of a type


@dataclass(frozen=True)
class Leaves:
    """The unsplit nodes below some roots, in the order of the roots; subtrees are not mixed.

    `root[i]` is the position in `roots` of the root of node `nodes[i]`, and `allowed[i, cell]` says
    which cells a row in that node can have.
    """

    layout: Layout
    roots: Integers
    nodes: Integers
    root: Integers
    allowed: Mask

    @staticmethod
    def at(layout: Layout, roots: Sequence[int] | Integers) -> Leaves:
        """Roots that are not split yet."""
        found = np.sort(np.asarray(roots, dtype=np.int64))
        allowed = np.ones((len(found), layout.offsets[-1]), dtype=np.bool_)
        return Leaves(layout, found, found, np.arange(len(found)), allowed)

    @staticmethod
    def of(layout: Layout, tree: Tree) -> Leaves:
        """The leaves of a tree."""
        found = Leaves.at(layout, [0])
        for nodes in [
            np.zeros(1, dtype=np.int64),
            *(below for below, _ in tree.descents(layout.cells)),
        ]:
            inner = nodes[tree.kind[nodes] != LEAF]
            parts = (tree.attribute, tree.kind, tree.cell, tree.first)
            found = found.split(inner, *(part[inner] for part in parts))
        return found

    def split(
        self, node: Integers, attribute: Integers, kind: Integers, cell: Integers, first: Integers
    ) -> Leaves:
        """The leaves after splits; splits of nodes that are not among them are ignored."""
        layout = self.layout
        order = np.argsort(node)
        known = np.searchsorted(node, self.nodes, sorter=order) % max(1, len(node))
        mine = order[known] if len(node) else known
        divided = node[mine] == self.nodes if len(node) else np.zeros(len(mine), dtype=np.bool_)
        if not divided.any():
            return self
        cells = np.where(kind == MULTIWAY, np.array(layout.cells)[attribute], 2)
        arity = np.where(divided, cells[mine], 1)
        before = np.repeat(np.arange(len(mine)), arity)
        branch = np.arange(len(before)) - np.repeat(np.cumsum(arity) - arity, arity)
        mine, divided = mine[before], divided[before, None]
        attribute_of = np.repeat(np.arange(len(layout.cells)), layout.cells)
        code = np.arange(layout.offsets[-1]) - layout.offsets[attribute_of]
        goes = branch_of(kind[mine, None], cell[mine, None], code) == branch[:, None]
        elsewhere = ~divided | (attribute_of != attribute[mine, None])
        return replace(
            self,
            nodes=np.where(divided[:, 0], first[mine] + branch, self.nodes[before]),
            root=self.root[before],
            allowed=self.allowed[before] & (goes | elsewhere),
        )

    @property
    def moved(self) -> bool:
        """Whether any root is split."""
        return len(self.nodes) > len(self.roots)

    @property
    def lookups(self) -> int:
        """About how many constants the expression looks up: a measure of the length of its code."""
        most = np.bincount(self.root).max() if self.moved else 0
        return int(-(-most // BITS)) * (1 + len(self.layout.blocks))

    @property
    def constants(self) -> int:
        """About how many constants the expression holds."""
        return len(self.roots) * int(self.layout.starts[-1])

    def sql(self, column: Sql, numbers: Numbers, values: Integers | None = None) -> Sql:
        """The node of a row; `column` has its root, which is not read if there is only one.

        With `values`, the value `values[i]` of the node `nodes[i]` instead of the node.
        All arrays are constants outside of the code that Spark generates. So queries for different
        depths have the same code, which Java compiles once.
        """
        of_node = self.nodes if values is None else values
        if not self.moved:
            if len(self.roots) == 1:
                return Sql(f"{of_node[0]}")
            return column if values is None else self._by_root(column, of_node, numbers)
        active = np.bincount(self.root) > 1
        if values is not None:
            active |= np.bincount(self.root, values) > 0
        slot = np.where(active, np.cumsum(active) - 1, -1)
        below = active[self.root]
        place = slot[self.root[below]]
        rank = np.arange(len(place)) - np.searchsorted(place, place)
        chosen = self._by_root(column, slot, numbers) if len(self.roots) > 1 else ""
        words = []
        for word in range(int(rank.max()) // BITS + 1):
            mine = rank // BITS == word
            bit, at = rank[mine] % BITS, place[mine]
            sets = self._sets(self.allowed[below][mine], bit, at, active.sum(), chosen, numbers)
            reached = np.zeros((active.sum(), BITS + 2), dtype=np.int64)  # an empty word: 64 bits
            reached[at, bit] = of_node[below][mine]
            index = _plus(chosen, BITS + 2, f"bit_count(({sets}) - 1)")
            words.append(f"get({numbers(reached.reshape(-1).tolist(), 'INT')}, {index})")
        found = " + ".join(words)
        if active.all():
            return Sql(found)
        return Sql(f"coalesce({found}, {column if values is None else 0})")

    def _by_root(self, column: Sql, values: Integers, numbers: Numbers) -> Sql:
        """A value for each root; -1 where there is no root."""
        low = int(self.roots[0])
        dense = np.full(int(self.roots[-1]) - low + 1, -1)
        dense[self.roots - low] = values
        return Sql(f"get({numbers(dense.tolist(), 'INT')}, {column} - {low})")

    def _sets(
        self,
        allowed: Mask,
        bit: Integers,
        at: Integers,
        slots: int,
        chosen: str,
        numbers: Numbers,
    ) -> str:
        """The nodes of a word that all codes of a row allow, as a bit set."""
        terms = []
        for block in range(len(self.layout.blocks)):
            of_block = self.layout.of_block(block, allowed)
            sets = np.zeros((slots, of_block.shape[1]), dtype=np.int64)
            np.add.at(sets, at, of_block.astype(np.int64) << bit[:, None])
            index = _plus(chosen, of_block.shape[1], self.layout.code(block))
            terms.append(f"get({numbers(sets.reshape(-1).tolist(), 'BIGINT')}, {index})")
        return " & ".join(terms)


def _plus(slot: str, size: int, index: str) -> str:
    """An index into a slot's part of an array. Slot -1 gives a negative one: `get` is NULL."""
    return f"{slot} * {size} + {index}" if slot else index
