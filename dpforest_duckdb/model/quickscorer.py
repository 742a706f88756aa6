"""The fast form of scoring: leaves found by bit sets, without a CASE per tree.

A value of an attribute rules out leaves: those behind the other branches of every split on that
attribute. The leaves that no attribute rules out are one leaf, the row's (Lucchese et al.,
QuickScorer, SIGIR 2015). So a tree is a list of bit sets for each group of attributes, looked up by
the row's code, and one AND. It reads DuckDB's lists and bit_count: no other database's SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.engine.dialect import unsigned
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree, branch_of

BITS = 64
GRID = 128  # cells of a group: fewer lookups, where lists stay short
PAYS = 4  # splits that a lookup costs as much as

Sets = NDArray[np.uint64]  # [code], a bit per leaf
Group = tuple[int, ...]  # attributes that are looked up together


def groups(trees: Sequence[Tree], cells: Sequence[int]) -> list[Group]:
    """The attributes that trees split by, put together as long as their joint grid stays small."""
    found: list[Group] = []
    for attribute in sorted({int(a) for tree in trees for a in tree.attribute[tree.kind != LEAF]}):
        if found and prod(cells[a] for a in (*found[-1], attribute)) <= GRID:
            found[-1] = (*found[-1], attribute)
        else:
            found.append((attribute,))
    return found


def groups_of(tree: Tree, found: Sequence[Group]) -> list[Group]:
    """The groups that a tree is looked up by: all it splits by, or none if a CASE is faster."""
    mine = [group for group in found if np.isin(tree.attribute, group).any()]
    splits, leaves = int((tree.kind != LEAF).sum()), len(tree.leaves)
    pays = len(mine) == 1 or (leaves <= BITS and PAYS * len(mine) <= splits)
    return mine if pays else []


def key(group: Group, cells: Sequence[int], codes: Sequence[Sql]) -> Sql:
    """A row's joint code of a group, from 1, as lists count: the last attribute varies fastest."""
    strides = [prod(cells[a] for a in group[i + 1 :]) for i in range(len(group))]
    terms = [
        f"({codes[a]})" + (f" * {stride}" if stride > 1 else "")
        for a, stride in zip(group, strides, strict=True)
    ]
    kind = unsigned(prod(cells[a] for a in group) + 1)
    return Sql(f"CAST(1 + {' + '.join(terms)} AS {kind})")


def votes_of_key(tree: Tree, group: Group, cells: Sequence[int]) -> NDArray[np.int64]:
    """`votes[code, class]` by the joint code of a group, if a tree splits by no other attribute."""
    grid = np.indices([cells[a] for a in group]).reshape(len(group), -1)
    codes = np.zeros((grid.shape[1], len(cells)), dtype=np.int64)
    codes[:, group] = grid.T
    return tree.votes[tree.find(codes)]


def leaves_left(tree: Tree, group: Group, cells: Sequence[int]) -> Sets:
    """The leaves, a bit each in the order of `tree.leaves`, that each joint code of a group leaves.

    At most `BITS` of them. The AND of what all groups leave has one bit.
    """
    grid = np.full([cells[a] for a in group], _below(tree, cells)[0])
    for number, attribute in enumerate(group):
        shape = [1] * len(group)
        shape[number] = cells[attribute]
        grid &= _of_attribute(tree, attribute, cells).reshape(shape)
    sets: Sets = grid.reshape(-1)
    return sets


def _of_attribute(tree: Tree, attribute: int, cells: Sequence[int]) -> Sets:
    """The leaves that each code of an attribute leaves."""
    below, code = _below(tree, cells), np.arange(cells[attribute])
    left = np.full(cells[attribute], below[0])
    for node in np.flatnonzero(tree.attribute == attribute):
        children = np.array(tree.children(int(node), cells))
        kind, cell = tree.kind[node], tree.cell[node]
        branch = code if kind == MULTIWAY else branch_of(np.array(kind), np.array(cell), code)
        left &= ~below[node] | below[children[branch]]
    return left


def _below(tree: Tree, cells: Sequence[int]) -> Sets:
    """The leaves below each node, itself if it is one."""
    below = np.zeros(tree.nodes, dtype=np.uint64)
    below[tree.leaves] = np.uint64(1) << np.arange(len(tree.leaves), dtype=np.uint64)
    for node in reversed(range(tree.nodes)):
        for child in tree.children(node, cells):
            below[node] |= below[child]
    return below
