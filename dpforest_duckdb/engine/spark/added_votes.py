"""The votes that were added to the scores of rows, and are not stored with them yet.

Trees that only split into the values of one attribute add up to one vote for each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.spark.leaves import Leaves
from dpforest_duckdb.scoring.codes import SparkDialect
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.tree import Tree


class AddedVotes:
    """What is to be added to the columns of scores."""

    def __init__(self, leaves: Leaves, scores: Sequence[Sql], dialect: SparkDialect) -> None:
        self._leaves, self._scores, self._dialect = leaves, scores, dialect
        self._in_rows = False
        self._clear()

    def _clear(self) -> None:
        scores = len(self._scores)
        self._everywhere = np.zeros(scores, dtype=np.int64)
        self._by_cell = np.zeros((scores, self._leaves.total), dtype=np.int64)
        self._attributes = set[int]()
        self._trees = list[Tree]()

    def add(self, trees: Sequence[Tree]) -> None:
        for tree in trees:
            by_cell = self._leaves.votes_of_cells(tree)
            if tree.nodes == 1:
                self._everywhere += np.concatenate(scores_of(tree.votes))
            elif by_cell is not None:
                self._by_cell += np.stack(scores_of(by_cell))
                self._attributes.add(int(tree.attribute[0]))
            else:
                self._trees.append(tree)

    @property
    def lookups(self) -> int:
        """About how many constants are looked up for a row."""
        scores = len(self._scores)
        of_trees = sum(scores + self._leaves.lookups(tree) for tree in self._trees)
        return of_trees + scores * len(self._attributes)

    def sql(self, view: Sql) -> Sql:
        """The rows of a view with their scores."""
        numbers, ident = self._dialect.numbers, self._dialect.ident
        leaves = [
            SimpleNamespace(column=ident(f"added{number}"), node=self._leaves.node(tree))
            for number, tree in enumerate(self._trees)
        ]
        votes = [scores_of(tree.votes) for tree in self._trees]
        scores = []
        for number, column in enumerate(self._scores):
            by_cell = numbers(self._by_cell[number].tolist(), "BIGINT")
            terms = [f"CAST({self._everywhere[number]} AS BIGINT)"]
            terms += [column] if self._in_rows else []
            terms += [f"get({by_cell}, get(`cells`, {a}))" for a in sorted(self._attributes)]
            terms += [
                f"get({numbers(of_tree[number].tolist(), 'BIGINT')}, {leaf.column})"
                for of_tree, leaf in zip(votes, leaves, strict=True)
            ]
            scores.append(SimpleNamespace(column=column, value=Sql(" + ".join(terms))))
        return render("spark/add_votes", codes=view, leaves=leaves, scores=scores)

    def stored(self) -> None:
        """Say that the rows have these scores now."""
        self._in_rows = True
        self._clear()


def scores_of(votes: Integers) -> list[Integers]:
    """What `votes[node, class]` add to each score; for two classes, the difference of the two."""
    return [votes[:, 1] - votes[:, 0]] if votes.shape[1] == 2 else list(votes.T)
