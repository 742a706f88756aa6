"""The SQL of what a coded row has at the leaf of a tree: its number, a vote, or a label.

Trees are released, so their splits and votes are constants in the statements.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.vote_grids import VoteGrid, added
from dpforest_duckdb.scoring.codes import unsigned
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import LEAF, MULTIWAY, THRESHOLD, Tree


def at_leaf(
    layout: Layout, tree: Tree, values: Sequence[int], node: int = 0, *, separate: bool = False
) -> Sql:
    """The value at the leaf of a row below a node of a tree, by the codes of the row.

    `values[node]` has a value for each node; those of inner nodes are not used. With `separate`,
    tests read the columns `layout.separate`, which is faster if a statement has many tests.
    """
    kind, first = int(tree.kind[node]), int(tree.first[node])
    if kind == LEAF:
        return Sql(values[node])
    attribute = int(tree.attribute[node])
    children = tree.children(node, layout.cells)
    below = functools.partial(at_leaf, layout, tree, values, separate=separate)
    if kind == MULTIWAY:
        code = layout.code_of(attribute)
        if all(tree.kind[child] == LEAF for child in children):
            return entry(code, [values[child] for child in children])
        branches = [f"WHEN {child - first} THEN {below(child)}" for child in children]
        return Sql(f"CASE {code} {' '.join(branches)} END")
    # a code is compared in the bits of its word: a shift of it would take longer
    place = layout.places[attribute]
    code, shift = Sql(f"({layout.words[place.word]} & {place.mask << place.shift})"), place.shift
    if separate:
        code, shift = layout.separate[attribute], 0
    test = f"{code} {'<=' if kind == THRESHOLD else '='} {int(tree.cell[node]) << shift}"
    yes, no = map(below, children)
    return Sql(f"CASE WHEN {test} THEN {yes} ELSE {no} END")


def leaf_number(layout: Layout, tree: Tree) -> Sql:
    """The number of the leaf of a row, if it is a sum of codes (see `in_grid`), else by a CASE."""
    return in_grid(layout, tree) or at_leaf(layout, tree, range(tree.nodes), separate=True)


def narrow(node: Sql, tree: Tree) -> Sql:
    """A number of a node, in the narrowest type that can count all nodes of the tree."""
    return Sql(f"CAST({node} AS {unsigned(tree.nodes)})")


def label(layout: Layout, tree: Tree) -> Sql:
    """The number of the class that a tree votes for, by the codes of a row."""
    return at_leaf(layout, tree, tree.labels.tolist())


def in_grid(layout: Layout, tree: Tree, root: int = 0) -> Sql | None:
    """The leaf as a sum of codes, if the tree has a path; None also if it has no split.

    The path begins at the node `root`.
    """
    path, leaves = _path(layout, tree, root)
    return Sql(f"{layout.combination(path)} + {leaves.start}") if path else None


def _path(layout: Layout, tree: Tree, root: int = 0) -> tuple[tuple[int, ...] | None, slice]:
    """The attribute of each depth and the leaves, if all nodes of a depth split by all values of
    the same attribute, and leaves are numbered in the order of the values. Otherwise None, and
    nodes that are of no use.
    """
    path, start, width = list[int](), root, 1
    while tree.kind[start] == MULTIWAY:
        nodes, attribute = slice(start, start + width), int(tree.attribute[start])
        size = layout.cells[attribute]
        first = start + width + size * np.arange(width)
        alike = (tree.kind[nodes] == MULTIWAY).all() and (tree.first[nodes] == first).all()
        if not alike or (tree.attribute[nodes] != attribute).any() or attribute in path:
            return None, nodes
        path.append(attribute)
        start, width = start + width, size * width
    leaves = slice(start, start + width)
    return tuple(path) if (tree.kind[leaves] == LEAF).all() else None, leaves


@dataclass(frozen=True)
class LookUps:
    """What each row looks up for the trees of some models: the SQL of a row's place, and the votes
    `[place, class]`, in a group for each set of models that share trees.

    `roots` are the attributes by whose values all paths begin; `root` names the number of a row's
    combination of these.
    """

    roots: tuple[int, ...]
    groups: dict[tuple[int, ...], list[tuple[Sql, Integers]]]

    @staticmethod
    def of(layout: Layout, models: Sequence[Sequence[Tree]], root: Sql) -> LookUps:
        """Those of the models, whose numbers tell the groups.

        A tree that several models have is looked up once, also if they have copies of it.
        """
        users = dict[Tree, list[int]]()
        for number, model in enumerate(models):
            for tree in model:
                users.setdefault(tree, []).append(number)
        trees = dict[tuple[Any, bytes], tuple[Integers, list[int]]]()
        for tree, numbers in users.items():
            path, leaves = _path(layout, tree)
            place = at_leaf(layout, tree, range(tree.nodes)) if path is None else path
            votes = tree.votes if path is None else tree.votes[leaves]
            trees.setdefault((place, votes.tobytes()), (votes, []))[1].extend(numbers)
        groups = dict[tuple[int, ...], list[tuple[Sql, Integers]]]()
        grids = dict[tuple[int, ...], list[VoteGrid]]()
        for (place, _), (votes, numbers) in trees.items():
            of_models = tuple(sorted(numbers))
            if isinstance(place, str):
                groups.setdefault(of_models, []).append((Sql(place), votes))
            else:
                sizes = [layout.cells[attribute] for attribute in place]
                grid = VoteGrid(place, votes.reshape(*sizes, -1))
                grids.setdefault(of_models, []).append(grid)
        sums = {of_models: added(some) for of_models, some in grids.items()}
        roots = _common([grid.attributes for some in sums.values() for grid in some])
        for of_models, some in sums.items():
            groups.setdefault(of_models, []).extend(
                (
                    layout.combination(grid.attributes[len(roots) :], root if roots else None),
                    grid.by_cell,
                )
                for grid in some
            )
        return LookUps(roots, groups)


def _common(paths: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The attributes at which all paths begin."""
    pairs = zip(min(paths, default=()), max(paths, default=()), strict=False)
    return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def entry(code: Sql, values: Sequence[int]) -> Sql:
    """The value with the number `code`."""
    if list(values) == list(range(values[0], values[0] + len(values))):
        return Sql(f"CAST({code} AS INTEGER) + {values[0]}")
    return Sql(f"{constants(values)}[CAST({code} AS INTEGER) + 1]")  # 255 + 1 is no UTINYINT


def constants(values: Sequence[int], kind: str = "BIGINT") -> Sql:
    """A list of constants, from one literal: parsing each takes several times as long."""
    return Sql(f"CAST('{list(values)}' AS {kind}[])")
