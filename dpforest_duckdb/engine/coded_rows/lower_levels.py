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
from dpforest_duckdb.engine.shared.exponentials import Ident
from dpforest_duckdb.engine.shared.packing import Place
from dpforest_duckdb.sql import Column, Sql
from dpforest_duckdb.tree import LEAF, MULTIWAY, THRESHOLD, Tree

# measured with DuckDB 2.0 on trees of depth 6 to 9, in tables of 30,000 and 1,000,000 rows
UPPER = 6  # levels of splits in the CASE; with look-ups for the sixth, 1,000,000 rows take longer
MOST_WORDS = 4  # packed columns that splits below may read: each split looks for its own

# where the parts of a packed split begin: the word, the shift and the mask of the code, the lowest
# code of the first branch, and how many codes follow in it
_SHIFT, _MASK, _LOW, _MORE = 8, 14, 30, 46
_BITS = 16  # of a mask and of a code


@dataclass(frozen=True)
class LowerLevels:
    """Layers of columns, each of which reads those before, and from them a row's `node`."""

    layers: list[list[Column]]
    node: Sql

    @staticmethod
    def of(layout: Layout, tree: Tree, ident: Ident, name: str) -> LowerLevels | None:
        """The columns, by the codes in `layout.separate` and the packed ones; None if a CASE is as
        fast, or if the tree is not complete: each node that is no leaf splits in two, and all
        leaves have the same depth.

        The names of columns begin with `name`.
        """
        start, end = 2**UPPER - 1, tree.nodes // 2  # the splits below the CASE
        if start >= end or not _complete(tree):
            return None
        places = [layout.places[attribute] for attribute in tree.attribute[start:end].tolist()]
        words = sorted({place.word for place in places})
        if len(words) > MOST_WORDS:
            return None
        kind = tree.kind.copy()
        kind[start:] = LEAF
        node = at_leaf(layout, replace(tree, kind=kind), range(tree.nodes), separate=True)
        packed = constants(_packed(tree, start, [_numbered(place, words) for place in places]))
        layers = list[list[Column]]()
        for level in range(UPPER, tree.depth(layout.cells)):
            found, split = ident(f"{name}_node{level}"), ident(f"{name}_split{level}")
            layers += [
                [Column(node, found)],
                [Column(Sql(f"{packed}[{found} - {start - 1}]"), split)],
            ]
            node = _below(found, split, [layout.words[word] for word in words])
        return LowerLevels(layers, node)


def _complete(tree: Tree) -> bool:
    """Whether each node that is no leaf splits in two, and all leaves have the same depth."""
    splits = tree.nodes // 2
    alike = np.array_equal(tree.first[:splits], 2 * np.arange(splits) + 1)
    binary = np.isin(tree.kind[:splits], (LEAF, MULTIWAY), invert=True).all()
    depths_are_equal = (tree.nodes & (tree.nodes + 1)) == 0
    return bool(alike and binary and depths_are_equal)


def _numbered(place: Place, words: Sequence[int]) -> Place:
    """The place with the number of its word among `words`."""
    return replace(place, word=words.index(place.word))


def _packed(tree: Tree, start: int, places: Sequence[Place]) -> list[int]:
    """The splits from node `start` on, each in one number; `places` are those of their codes."""
    assert max(place.bits for place in places) <= _BITS, "a code has few bits"
    found = list[int]()
    for node, place in enumerate(places, start):
        cell = int(tree.cell[node])
        low, more = (0, cell) if tree.kind[node] == THRESHOLD else (cell, 0)
        code = place.word | place.shift << _SHIFT | place.mask << _MASK
        found.append(code | low << _LOW | more << _MORE)
    return found


def _below(node: Sql, split: Sql, words: Sequence[Sql]) -> Sql:
    """The child of a node, by its packed split and the packed codes of a row."""
    *others, last = [f"CAST({word} AS BIGINT)" for word in words]
    whens = " ".join(f"WHEN {number} THEN {word}" for number, word in enumerate(others))
    word = f"CASE {split} & {2**_SHIFT - 1} {whens} ELSE {last} END" if others else last
    shift, mask, low, more = (
        f"(({split} >> {first}) & {2**bits - 1})"
        for first, bits in ((_SHIFT, _MASK - _SHIFT), (_MASK, _BITS), (_LOW, _BITS), (_MORE, _BITS))
    )
    second = f"(({word} >> {shift}) & {mask}) - {low} NOT BETWEEN 0 AND {more}"
    return Sql(f"2 * {node} + 1 + CAST({second} AS INTEGER)")
