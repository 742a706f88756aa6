"""A tree as arrays of nodes.

The nodes of a tree are in breadth-first order: the root first, the children of a node side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.errors import number_of

NodeKind = Literal[0, 1, 2, 3]
LEAF: NodeKind = 0
MULTIWAY: NodeKind = 1  # a child per cell of the attribute
THRESHOLD: NodeKind = 2  # cells up to `cell` go to the first child, the others to the second
EQUALS: NodeKind = 3  # the cell `cell` goes to the first child, the others to the second
SCALE = 1_000_000  # the votes of a leaf are shares, or log-odds, in millionths


class Voting(StrEnum):
    """How trees vote together for a class: by the sum of their votes, or by the most of a tree."""

    SUM = "sum"
    SUREST = "surest"

    @property
    def combine(self) -> np.ufunc:
        return np.add if self == Voting.SUM else np.maximum


def branch_of(kind: Integers, cell: Integers, code: Integers) -> Integers:
    """The branch, from 0, that a code takes at a split; elementwise."""
    binary = np.where(kind == THRESHOLD, code > cell, code != cell).astype(np.int64)
    return np.where(kind == MULTIWAY, code, binary)


@dataclass(frozen=True, eq=False)  # arrays have no single truth value
class Tree:
    """One tree, as parallel arrays over its nodes.

    `kind[node]` (`NodeKind`), `attribute[node]` and `cell[node]` are the split, and `first[node]`
    is the number of the first child. A leaf has -1 for attribute and first. `counts[node, class]`
    are noisy numbers of rows, if the recipe has them. `votes[node, class]` are the votes of the
    leaves, zero elsewhere: shares or log-odds, in whole millionths.

    `noise[node]` is the standard deviation of the noise in each of a node's counts, in rows: NaN
    for a node whose counts were not released, None if no node's were, or if it is not known.
    `vote_noise[node, class]` is that in the votes of leaves whose counts were not released, minus
    their mean over the classes, to first order; None if it is not known.

    All of it is public or released.
    """

    kind: Integers
    attribute: Integers
    cell: Integers
    first: Integers
    counts: Integers | None
    votes: Integers
    noise: Floats | None = None
    vote_noise: Floats | None = None

    def __repr__(self) -> str:
        return f"<Tree: {number_of(self.nodes, 'node')}>"

    @property
    def nodes(self) -> int:
        """The number of nodes, leaves included."""
        return len(self.kind)

    @property
    def leaves(self) -> Integers:
        """The numbers of the leaves, ascending."""
        return np.flatnonzero(self.kind == LEAF)

    @property
    def labels(self) -> Integers:
        """The class with most votes at each `[node]`; those of inner nodes are not used."""
        labels: Integers = self.votes.argmax(axis=1)
        return labels

    def renumbered(self, numbers: Sequence[int]) -> Tree:
        """The tree with `numbers[attribute]` in place of each attribute's number."""
        attribute = np.append(np.array(numbers, dtype=np.int64), -1)[self.attribute]
        return replace(self, attribute=attribute)

    def children(self, node: int, cells: Sequence[int]) -> range:
        """The node numbers of a node's children; `cells` are the domain's."""
        if self.kind[node] == LEAF:
            return range(0)
        arity = cells[self.attribute[node]] if self.kind[node] == MULTIWAY else 2
        return range(int(self.first[node]), int(self.first[node]) + arity)

    def below(self, nodes: Integers, cells: Sequence[int]) -> tuple[Integers, Integers]:
        """The numbers of the children of `nodes`, and the parent of each `[child]`."""
        inner = nodes[self.kind[nodes] != LEAF]
        arity = np.where(self.kind[inner] == MULTIWAY, np.array(cells)[self.attribute[inner]], 2)
        branch = np.arange(arity.sum()) - np.repeat(arity.cumsum() - arity, arity)
        return np.repeat(self.first[inner], arity) + branch, np.repeat(inner, arity)

    def parents(self, cells: Sequence[int]) -> Integers:
        """The parent of each `[node]`, -1 for the root."""
        parent = np.full(self.nodes, -1, dtype=np.int64)
        children, above = self.below(np.arange(self.nodes), cells)
        parent[children] = above
        return parent

    def descents(self, cells: Sequence[int]) -> list[tuple[Integers, Integers]]:
        """By depth from 1 on, the numbers of its nodes and the parent of each."""
        found = [self.below(np.zeros(1, dtype=np.int64), cells)]
        while len(found[-1][0]):
            found.append(self.below(found[-1][0], cells))
        return found[:-1]

    def depth(self, cells: Sequence[int]) -> int:
        """The number of splits on the longest path."""
        return len(self.descents(cells))

    def find(self, codes: Integers) -> Integers:
        """The leaf of each row of `codes[row, attribute]`."""
        node = np.zeros(len(codes), dtype=np.int64)
        rows = np.arange(len(codes))
        while len(rows):
            rows = rows[self.kind[node[rows]] != LEAF]
            at = node[rows]
            code = codes[rows, self.attribute[at]]
            node[rows] = self.first[at] + branch_of(self.kind[at], self.cell[at], code)
        return node

    def cut(self, closed: Mask, cells: Sequence[int]) -> Tree:
        """The tree with the `closed[node]` made leaves, without the nodes below them."""
        keep = np.zeros(self.nodes, dtype=np.bool_)
        keep[0] = True
        for node in range(self.nodes):
            if keep[node] and not closed[node]:
                keep[list(self.children(node, cells))] = True
        number = np.cumsum(keep) - 1
        leaf = closed | (self.kind == LEAF)
        first = np.where(leaf, -1, number[np.clip(self.first, 0, None)])
        return Tree(
            kind=np.where(leaf, LEAF, self.kind)[keep],
            attribute=np.where(leaf, -1, self.attribute)[keep],
            cell=np.where(leaf, 0, self.cell)[keep],
            first=first[keep],
            counts=None if self.counts is None else self.counts[keep],
            votes=self.votes[keep],
            noise=None if self.noise is None else self.noise[keep],
            vote_noise=None if self.vote_noise is None else self.vote_noise[keep],
        )


def counts_of(tree: Tree) -> Integers:
    """The counts `[node, class]` of a tree that must have some."""
    assert tree.counts is not None, "this is for trees with counts"
    return tree.counts


def noise_of(tree: Tree) -> Floats:
    """The noise `[node]` in the counts of a tree that must have some."""
    assert tree.noise is not None, "counts come with their noise"
    return tree.noise
