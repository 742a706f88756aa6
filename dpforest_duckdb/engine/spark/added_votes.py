"""Votes to add to the scores of rows, which are not stored with the rows yet.

The votes of all trees that split only by attributes of one block are summed for each joint code.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.shared.grids import scores_of
from dpforest_duckdb.engine.spark.layout import Layout
from dpforest_duckdb.engine.spark.leaves import Leaves
from dpforest_duckdb.scoring.codes import SparkCodes
from dpforest_duckdb.sql import Column, Sql, render
from dpforest_duckdb.tree import LEAF, Tree


class AddedVotes:
    """What is to be added to the columns of scores."""

    def __init__(self, layout: Layout, scores: Sequence[Sql], dialect: SparkCodes) -> None:
        self._layout, self._scores, self._dialect = layout, scores, dialect
        self._in_rows = False
        self._clear()

    def _clear(self) -> None:
        scores = len(self._scores)
        self._everywhere = np.zeros(scores, dtype=np.int64)
        self._of_blocks = dict[int, Integers]()  # votes[score, code]
        self._trees = list[Tree]()

    def add(self, trees: Sequence[Tree]) -> None:
        for tree in trees:
            attributes = sorted(set(tree.attribute[tree.kind != LEAF].tolist()))
            block = self._layout.block_of(attributes)
            if not attributes:
                self._everywhere += np.concatenate(scores_of(tree.votes))
            elif block is not None:
                votes = np.stack(scores_of(tree.votes[tree.find(self._layout.codes(block))]))
                self._of_blocks[block] = self._of_blocks.get(block, 0) + votes
            else:
                self._trees.append(tree)

    @property
    def lookups(self) -> int:
        """About how many constants are looked up for a row."""
        scores = len(self._scores)
        of_trees = sum(scores + leaves.lookups for leaves in self._leaves())
        return of_trees + scores * len(self._of_blocks)

    def _leaves(self) -> list[Leaves]:
        return [Leaves.of(self._layout, tree) for tree in self._trees]

    def sql(self, view: Sql) -> Sql:
        """The rows of a view with their scores."""
        numbers, ident = self._dialect.numbers, self._dialect.ident
        leaves = [
            Column(found.sql(Sql("0"), numbers), ident(f"added{number}"))
            for number, found in enumerate(self._leaves())
        ]
        of_trees = [scores_of(tree.votes) for tree in self._trees]
        scores = []
        for number, column in enumerate(self._scores):
            terms = [f"CAST({self._everywhere[number]} AS BIGINT)"]
            terms += [column] if self._in_rows else []
            terms += [
                f"get({numbers(votes[number].tolist(), 'BIGINT')}, {self._layout.code(block)})"
                for block, votes in sorted(self._of_blocks.items())
            ]
            terms += [
                f"get({numbers(of_tree[number].tolist(), 'BIGINT')}, {leaf.name})"
                for of_tree, leaf in zip(of_trees, leaves, strict=True)
            ]
            scores.append(Column(Sql(" + ".join(terms)), column))
        return render(
            "spark/add_votes", codes=view, words=self._layout.words, leaves=leaves, scores=scores
        )

    def stored(self) -> None:
        """Forget the votes, because the stored rows have them in their scores now."""
        self._in_rows = True
        self._clear()
