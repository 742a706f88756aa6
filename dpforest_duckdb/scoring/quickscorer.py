"""The fast form of scoring: leaves found by bit sets, without a CASE per tree.

A value of an attribute excludes leaves: those behind the other branches of every split on that
attribute. The one leaf that no attribute excludes is the row's (Lucchese et al., QuickScorer, SIGIR
2015). So a tree is a list of bit sets for each group of attributes, looked up by the row's code,
and one AND. It needs DuckDB's lists and bit_count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.scoring.codes import DuckDBDialect, unsigned
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.layers import Helper, Layer, Terms
from dpforest_duckdb.scoring.tree_sql import tree_case
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree, branch_of

BITS = 64
GRID = 128  # most cells of a group; a larger group needs fewer lookups but longer lists
PAYS = 4  # splits of a CASE that take as long as one lookup

_DIALECT = DuckDBDialect()
_WORD = Sql("UBIGINT")  # the type of a bit set

Sets = NDArray[np.uint64]  # [code], a bit per leaf
Group = tuple[int, ...]  # attributes that are looked up together


def fast_layers(
    forest: ForestContent,
    attributes: Sequence[Attribute],
    columns: Sequence[Sql],
    emitted: int,
    read: Sequence[Sql],
    name: Callable[[str], Sql],
) -> tuple[list[Layer], Terms]:
    """The layers of keys and leaves, and the votes `[class][tree]` in terms of their helpers.

    A tree that bit sets would not make faster stays a CASE. `read` are the columns to pass on if a
    layer does not keep all of them; `name` gives free names.
    """
    cells, leaves = forest.domain.cells, list[Helper]()
    terms: Terms = [[] for _ in range(emitted)]
    found = groups(forest.trees, cells)
    looked = [groups_of(tree, found) for tree in forest.trees]
    codes = [_DIALECT.code(a, column) for a, column in zip(attributes, columns, strict=True)]
    keys = {
        group: Helper(
            "key of " + ", ".join(attributes[a].name for a in group),
            key(group, cells, codes),
            name(f"key_{number}"),
        )
        for number, group in enumerate(found)
        if any(group in of_tree for of_tree in looked)
    }
    for number, (tree, of_tree) in enumerate(zip(forest.trees, looked, strict=True)):
        if len(of_tree) == 1:
            for votes, of_class in zip(
                votes_of_key(tree, of_tree[0], cells).T, terms, strict=False
            ):
                of_class.append(_one_of(votes, keys[of_tree[0]].column))
            continue
        if emitted == 1 and not of_tree:
            terms[0].append(tree_case(_DIALECT, tree, attributes, columns, tree.votes[:, 0]))
            continue
        column = name(f"leaf_{number}")
        if of_tree:
            votes_of_leaf = tree.votes[tree.leaves]
            left = [_one_of(leaves_left(tree, g, cells), keys[g].column, _WORD) for g in of_tree]
            value = Sql(f"1 + bit_count(({' & '.join(left)}) - 1)")
        else:
            votes_of_leaf, leaf = np.unique(tree.votes, axis=0, return_inverse=True)
            number_of_leaf = leaf.reshape(-1) + 1  # lists count from 1
            value = tree_case(_DIALECT, tree, attributes, columns, number_of_leaf)
        leaves.append(Helper(f"leaf of tree {number + 1}", value, column))
        for votes, of_class in zip(votes_of_leaf.T, terms, strict=False):
            of_class.append(_one_of(votes, column))
    key_columns = [Sql(f"t.{helper.column}") for helper in keys.values()]
    layers = [
        Layer(name("keys"), list(keys.values()), read),
        Layer(name("leaves"), leaves, [*read, *key_columns]),
    ]
    return [layer for layer in layers if layer.helpers], terms


def _one_of(values: NDArray[Any], column: Sql, kind: Sql | None = None) -> Sql:
    """One of a constant list of a type, by its number from 1 in a helper column."""
    constants = f"[{', '.join(map(str, values.tolist()))}]"
    return Sql(f"{f'CAST({constants} AS {kind}[])' if kind else constants}[t.{column}]")


def groups(trees: Sequence[Tree], cells: Sequence[int]) -> list[Group]:
    """The attributes that trees split by, grouped as long as their joint grid stays small."""
    found: list[Group] = []
    for attribute in sorted({int(a) for tree in trees for a in tree.attribute[tree.kind != LEAF]}):
        if found and prod(cells[a] for a in (*found[-1], attribute)) <= GRID:
            found[-1] = (*found[-1], attribute)
        else:
            found.append((attribute,))
    return found


def groups_of(tree: Tree, found: Sequence[Group]) -> list[Group]:
    """The groups that a tree is looked up by: all attributes of its splits, or none if a CASE is
    faster.
    """
    of_tree = [group for group in found if np.isin(tree.attribute, group).any()]
    splits, leaves = int((tree.kind != LEAF).sum()), len(tree.leaves)
    pays = len(of_tree) == 1 or (leaves <= BITS and PAYS * len(of_tree) <= splits)
    return of_tree if pays else []


def key(group: Group, cells: Sequence[int], codes: Sequence[Sql]) -> Sql:
    """A row's joint code of a group, from 1 as lists count; the last attribute varies fastest."""
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
    """The leaves that remain possible for each joint code of a group, as bit sets.

    Leaves have one bit each, in the order of `tree.leaves`; there are at most `BITS`. The AND over
    all groups has one bit.
    """
    grid = np.full([cells[a] for a in group], _below(tree, cells)[0])
    for number, attribute in enumerate(group):
        shape = [1] * len(group)
        shape[number] = cells[attribute]
        grid &= _of_attribute(tree, attribute, cells).reshape(shape)
    sets: Sets = grid.reshape(-1)
    return sets


def _of_attribute(tree: Tree, attribute: int, cells: Sequence[int]) -> Sets:
    """The leaves that remain for each code of an attribute."""
    below, code = _below(tree, cells), np.arange(cells[attribute])
    left = np.full(cells[attribute], below[0])
    for node in np.flatnonzero(tree.attribute == attribute):
        children = np.array(tree.children(int(node), cells))
        kind, cell = tree.kind[node], tree.cell[node]
        branch = code if kind == MULTIWAY else branch_of(np.array(kind), np.array(cell), code)
        left &= ~below[node] | below[children[branch]]
    return left


def _below(tree: Tree, cells: Sequence[int]) -> Sets:
    """The leaves below each node; a leaf is below itself."""
    below = np.zeros(tree.nodes, dtype=np.uint64)
    below[tree.leaves] = np.uint64(1) << np.arange(len(tree.leaves), dtype=np.uint64)
    for node in reversed(range(tree.nodes)):
        for child in tree.children(node, cells):
            below[node] |= below[child]
    return below
