"""The leaf of a row in a large complete tree: a CASE for the upper levels, then look-ups.

DuckDB takes long to plan a CASE of many splits, and most splits of a complete tree are at its last
levels. A look-up finds a row's split at such a level, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.leaves import at_leaf, constants
from dpforest_duckdb.engine.shared.packing import Place
from dpforest_duckdb.sql import Column, Ident, Sql
from dpforest_duckdb.tree import LEAF, MULTIWAY, THRESHOLD, Tree

# Levels of splits in the CASE. Measured with DuckDB 2.0 on trees of depth 7 to 9: with look-ups for
# the levels below, 30,000 rows take half of the time, and 1,000,000 rows about the same; with a
# look-up for the sixth level too, 1,000,000 rows take longer.
UPPER = 6

# where the parts of a packed split begin, after the shift of the code: its mask, the lowest code of
# the first branch, and how many more codes this branch has
_MASK, _LOW, _MORE = 6, 22, 38
_BITS = 16  # of a mask and of a code


@dataclass(frozen=True)
class LowerLevels:
    """Layers of columns, and from the last one a row's `node`.

    Each layer reads the layer before it, and the codes.
    """

    layers: list[list[Column]]
    node: Sql

    @staticmethod
    def of(layout: Layout, tree: Tree, ident: Ident, name: str) -> LowerLevels | None:
        """The columns, by the codes in `layout.separate` and those in a packed column; None if the
        tree has few levels, if it is not complete, or if its lower splits read several packed
        columns: many rows would take longer to choose one of them than a CASE takes.

        In a complete tree each node that is no leaf splits in two, and the children of node n are
        2n + 1 and 2n + 2. The names of columns begin with `name`.
        """
        start, end = 2**UPPER - 1, tree.nodes // 2  # the splits below the CASE
        if start >= end or not _complete(tree):
            return None
        places = [layout.places[attribute] for attribute in tree.attribute[start:end].tolist()]
        word, *others = {layout.words[place.word] for place in places}
        if others:
            return None
        kind = tree.kind.copy()
        kind[start:] = LEAF
        node = at_leaf(layout, replace(tree, kind=kind), range(tree.nodes), separate=True)
        packed = constants(_packed(tree, start, places))
        layers = list[list[Column]]()
        for level in range(UPPER, tree.depth(layout.cells)):
            found, split = ident(f"{name}_node{level}"), ident(f"{name}_split{level}")
            layers += [
                [Column(node, found)],
                [Column(Sql(f"{packed}[{found} - {start - 1}]"), split)],
            ]
            node = _below(found, split, word)
        return LowerLevels(layers, node)


def _complete(tree: Tree) -> bool:
    """Whether each node that is no leaf splits in two, leaves have the same depth, and nodes are
    numbered level by level.
    """
    splits = tree.nodes // 2
    alike = np.array_equal(tree.first[:splits], 2 * np.arange(splits) + 1)
    binary = np.isin(tree.kind[:splits], (LEAF, MULTIWAY), invert=True).all()
    depths_are_equal = (tree.nodes & (tree.nodes + 1)) == 0
    return bool(alike and binary and depths_are_equal)


def _packed(tree: Tree, start: int, places: Sequence[Place]) -> list[int]:
    """The splits from node `start` on, each in one number; `places` are those of their codes."""
    assert max(place.bits for place in places) <= _BITS, "a code has few bits"
    found = list[int]()
    for node, place in enumerate(places, start):
        cell = int(tree.cell[node])
        low, more = (0, cell) if tree.kind[node] == THRESHOLD else (cell, 0)
        found.append(place.shift | place.mask << _MASK | low << _LOW | more << _MORE)
    return found


def _below(node: Sql, split: Sql, word: Sql) -> Sql:
    """The child of a node, by its packed split and the packed codes of a row."""
    shift = f"({split} & {2**_MASK - 1})"
    mask, low, more = (f"(({split} >> {first}) & {2**_BITS - 1})" for first in (_MASK, _LOW, _MORE))
    code = f"((CAST({word} AS BIGINT) >> {shift}) & {mask})"
    second = f"{code} - {low} NOT BETWEEN 0 AND {more}"
    return Sql(f"2 * {node} + 1 + CAST({second} AS INTEGER)")
