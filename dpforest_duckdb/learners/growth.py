"""The nodes of all trees while they grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.splits.candidates import Candidates
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree


@dataclass
class Growth:
    """The nodes of all trees while they grow, numbered by depth; node t is the root of tree t.

    `noisy[node, class]` holds released histograms, zero before a release. `noise[node]` is the
    standard deviation of the noise in them, NaN before a release and for labels. `noise` and `tree`
    are public.
    """

    cells: tuple[int, ...]
    trees: int
    classes: int
    tree: Integers = field(init=False)
    kind: Integers = field(init=False)
    attribute: Integers = field(init=False)
    cell: Integers = field(init=False)
    first: Integers = field(init=False)
    noisy: Integers = field(init=False)
    noise: Floats = field(init=False)
    limited: int = 0

    def __post_init__(self) -> None:
        self.tree = np.arange(self.trees)
        self.kind = np.full(self.trees, LEAF, dtype=np.int64)
        self.attribute = np.full(self.trees, -1, dtype=np.int64)
        self.cell = np.zeros(self.trees, dtype=np.int64)
        self.first = np.full(self.trees, -1, dtype=np.int64)
        self.noisy = np.zeros((self.trees, self.classes), dtype=np.int64)
        self.noise = np.full(self.trees, np.nan)

    def release(self, nodes: Integers | NDArray[np.intp], noisy: Integers, noise: float) -> None:
        """Store `noisy[i, class]` of `nodes[i]`; `noise` is the standard deviation of a count, NaN
        for labels.
        """
        self.noisy[nodes], self.noise[nodes] = noisy, noise

    @property
    def nodes(self) -> int:
        return len(self.kind)

    @property
    def leaves(self) -> int:
        return int((self.kind == LEAF).sum())

    def split(self, nodes: Integers, attribute: Integers, kind: Integers, cell: Integers) -> Splits:
        """Split `nodes[i]` by `attribute[i]`, as `kind[i]` at `cell[i]`; append their children."""
        arity = np.where(kind == MULTIWAY, np.array(self.cells)[attribute], 2)
        first = self.nodes + np.concatenate([[0], np.cumsum(arity)[:-1]])
        self.kind[nodes], self.attribute[nodes] = kind, attribute
        self.cell[nodes], self.first[nodes] = cell, first
        born = int(arity.sum())
        self.tree = np.concatenate([self.tree, np.repeat(self.tree[nodes], arity)])
        self.kind = np.concatenate([self.kind, np.full(born, LEAF)])
        self.attribute = np.concatenate([self.attribute, np.full(born, -1)])
        self.cell = np.concatenate([self.cell, np.zeros(born, dtype=np.int64)])
        self.first = np.concatenate([self.first, np.full(born, -1)])
        self.noisy = np.concatenate([self.noisy, np.zeros((born, self.classes), dtype=np.int64)])
        self.noise = np.concatenate([self.noise, np.full(born, np.nan)])
        return self.splits(nodes)

    def split_by(self, nodes: Integers, candidates: Candidates, chosen: Integers) -> Splits:
        """Split each node by one of the candidates: `chosen[i]` is the number of its candidate."""
        parts = (candidates.attribute, candidates.kind, candidates.cell)
        return self.split(nodes, *(part[chosen] for part in parts))

    def split_by_cell(self, nodes: Integers, attribute: int) -> Splits:
        """Split nodes into a child for each cell of one attribute."""
        same = np.ones(len(nodes), dtype=np.int64)
        return self.split(nodes, attribute * same, MULTIWAY * same, 0 * same)

    def splits(self, nodes: Integers) -> Splits:
        """How nodes are split."""
        return Splits(
            node=nodes.tolist(),
            attribute=self.attribute[nodes].tolist(),
            kind=self.kind[nodes].tolist(),
            cell=self.cell[nodes].tolist(),
            first=self.first[nodes].tolist(),
        )

    def depths(self) -> Integers:
        """The number of splits on the way to each `[node]`."""
        depth = np.zeros(self.nodes, dtype=np.int64)
        width = np.where(self.kind == MULTIWAY, np.array(self.cells)[self.attribute], 2)
        for node in np.flatnonzero(self.kind != LEAF).tolist():  # children have higher numbers
            depth[self.first[node] : self.first[node] + width[node]] = depth[node] + 1
        return depth

    def spread(self, values: Sequence[Integers]) -> Integers:
        """`[node]` by the numbers used while growing, from `values[tree][node of the tree]`."""
        spread = np.zeros(self.nodes, dtype=np.int64)
        for tree, value in enumerate(values):
            spread[self.tree == tree] = value
        return spread

    def finished(self) -> list[Tree]:
        """Each tree by itself, with its nodes renumbered from its root."""
        grown = []
        for tree in range(self.trees):
            mine = np.flatnonzero(self.tree == tree)
            number = np.zeros(self.nodes, dtype=np.int64)
            number[mine] = np.arange(len(mine))
            first = self.first[mine]
            grown.append(
                Tree(
                    kind=self.kind[mine],
                    attribute=self.attribute[mine],
                    cell=self.cell[mine],
                    first=np.where(first < 0, -1, number[first]),
                    counts=self.noisy[mine],
                    votes=np.zeros((len(mine), self.classes), dtype=np.int64),
                    noise=self.noise[mine],
                )
            )
        return grown


def one_split(domain: Domain, attribute: int) -> Tree:
    """A tree of one split into the cells of an attribute, without counts and votes."""
    growth = Growth(domain.cells, 1, len(domain.classes))
    growth.split_by_cell(np.zeros(1, dtype=np.int64), attribute)
    return replace(growth.finished()[0], counts=None, noise=None)
