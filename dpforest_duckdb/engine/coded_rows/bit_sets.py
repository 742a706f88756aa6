"""The leaf of a row by bit sets, for large trees that split by few attributes.

A value of an attribute excludes leaves: those behind the other branches of every split by that
attribute. The one leaf that no attribute excludes is the row's (Lucchese et al., QuickScorer, SIGIR
2015). A leaf is one bit of a word, and a word has 64. For each of its values a row looks up the
words with the leaves that the value does not exclude, and takes their AND. With few look-ups this
is faster than a CASE over many splits, which takes long to plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.leaves import constants
from dpforest_duckdb.scoring.lookups import BITS
from dpforest_duckdb.scoring.quickscorer import leaves_left
from dpforest_duckdb.sql import Column, Ident, Sql
from dpforest_duckdb.tree import LEAF, Tree

# measured with DuckDB 2.0 on trees of 2 to 256 leaves, in tables of 1,000 to 220,000 rows
PER_LEVEL = 3  # look-ups that take as long as a level of a CASE
PER_SPLIT = 8  # words in lists that take as long to parse as a split of a CASE takes to plan


@dataclass(frozen=True)
class BitSets:
    """Columns with the `words` of a tree, one of which has a bit, and from them a row's `node`."""

    words: list[Column]
    node: Sql

    @staticmethod
    def of(layout: Layout, tree: Tree, ident: Ident, name: str) -> BitSets | None:
        """The columns, by the codes in `layout.separate`; None if a CASE is as fast, or if the tree
        has no split.

        The names of words begin with `name`.
        """
        used, many = np.unique(tree.attribute[tree.kind != LEAF]), -(-len(tree.leaves) // BITS)
        cells = [layout.cells[attribute] for attribute in used]
        if not _pays(tree, many, cells, tree.depth(layout.cells)):
            return None
        numbers = np.searchsorted(used, np.arange(len(layout.cells)))  # among those used
        found = _sets(tree.renumbered(numbers.tolist()), cells)
        sets = np.split(found, np.cumsum(cells)[:-1], axis=1)
        words = []
        for word in range(many):
            terms = [  # 255 + 1 is no UTINYINT
                f"{constants(of_word[word].tolist(), 'UBIGINT')}"
                f"[CAST({layout.separate[attribute]} AS INTEGER) + 1]"
                for attribute, of_word in zip(used, sets, strict=True)
            ]
            words.append(Column(Sql(" & ".join(terms)), ident(f"{name}_{word}")))
        return BitSets(words, _node(tree, [word.name for word in words]))


def _pays(tree: Tree, words: int, cells: Sequence[int], depth: int) -> bool:
    """Whether so many words for each attribute of some `cells` take less time than a CASE."""
    splits = tree.nodes - len(tree.leaves)
    return 0 < words * len(cells) <= PER_LEVEL * depth and words * sum(cells) <= PER_SPLIT * splits


def _sets(tree: Tree, cells: Sequence[int]) -> NDArray[np.uint64]:
    """The bits `[word, code]` of the leaves that each code of each attribute does not exclude."""
    left = leaves_left(tree, cells)
    padded = np.pad(left, ((0, -len(left) % BITS), (0, 0))).reshape(-1, BITS, left.shape[1])
    bits = np.uint64(1) << np.arange(BITS, dtype=np.uint64)
    found: NDArray[np.uint64] = (padded * bits[:, None]).sum(axis=1, dtype=np.uint64)
    return found


def _node(tree: Tree, words: list[Sql]) -> Sql:
    """The number of the leaf whose bit is in one of the words."""
    leaves = tree.leaves.tolist()
    in_a_row = leaves == list(range(leaves[0], leaves[0] + len(leaves)))
    first = leaves[0] if in_a_row else 1  # lists count from 1
    numbers = [
        f"CAST(bit_count({word} - 1) AS INTEGER) + {first + BITS * n}"
        for n, word in enumerate(words)
    ]
    *others, last = numbers
    whens = [f"WHEN {word} > 0 THEN {each}" for word, each in zip(words, others, strict=False)]
    number = f"CASE {' '.join(whens)} ELSE {last} END" if whens else last
    return Sql(number if in_a_row else f"{constants(leaves)}[{number}]")
