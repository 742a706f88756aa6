"""The scores of coded rows in DuckDB: votes are added, and gradients at the scores are summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Gradients
from dpforest_duckdb.engine.coded_rows.leaves import at_leaf, constants, in_grid, leaf_number
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.shared.exponentials import Shares
from dpforest_duckdb.engine.shared.grids import by_tree, scored_classes, scores_of
from dpforest_duckdb.sql import Sql, nested, render
from dpforest_duckdb.tree import LEAF, Tree

MAX_UNSTORED = 3  # trees whose votes every statement looks up again; with more, scores are stored


class ScoredRows:
    """Stored rows with a score for each class, or for the second of two."""

    def __init__(self, stored: StoredRows) -> None:
        self._stored = stored
        self._layout = stored.layout
        self._scores = [stored.ident(f"score{label}") for label in scored_classes(stored.classes)]
        self._scored = False
        self._unstored: list[Tree] = []  # whose votes are not in the stored scores
        self._leaves: dict[Sql, Sql] = {}  # columns of stored leaves, by the SQL of the leaf

    def add_votes(self, trees: Sequence[Tree]) -> None:
        self._unstored += trees  # until the scores are read

    def _with_votes(self, trees: Mapping[Sql, Tree]) -> Sql:
        """The coded rows with their scores, for a statement that needs the leaves of `trees`.

        Votes that are not stored yet are added in the statement, if they are those of at most
        MAX_UNSTORED trees, and the leaves of all trees are sums of codes (see `in_grid`).
        """
        large = {leaf: tree for leaf, tree in trees.items() if not in_grid(self._layout, tree)}
        cheap = not large and all(in_grid(self._layout, tree) for tree in self._unstored)
        if not self._scored or not cheap or len(self._unstored) > MAX_UNSTORED:
            self._store_votes(large)
        if not self._unstored:
            return self._stored.codes
        return nested("add_votes", made=None, leaves={}, **self._added(self._unstored))

    def _store_votes(self, trees: Mapping[Sql, Tree]) -> None:
        """Store the scores with all votes, and the leaves of the `trees` that are summed next.

        So leaves need not be found again when the votes of these trees are added: DuckDB takes long
        to plan a statement with large trees.
        """
        leaves = {leaf: self._stored.ident(f"next{number}") for number, leaf in enumerate(trees)}
        found = [*self._unstored, *trees.values()]
        self._stored.replace("add_votes", leaves=leaves, **self._added(found))
        self._scored, self._unstored, self._leaves = True, [], leaves

    def _added(self, found: Sequence[Tree]) -> dict[str, Any]:
        """What the template needs to add the votes that are not stored. The leaves of the trees
        `found` are found in the same statement.
        """
        return {
            "codes": self._stored.codes,
            "columns": [*self._layout.words, *self._stored.node_classes],
            "scores": self._scores,
            "scored": self._scored,
            "trees": [self._votes(tree, f"leaf{n}") for n, tree in enumerate(self._unstored)],
            "cells": {
                self._layout.separate[attribute]: self._layout.code_of(attribute)
                for tree in found
                for attribute in np.unique(tree.attribute[tree.kind != LEAF]).tolist()
                if not in_grid(self._layout, tree)
            },
        }

    def _votes(self, tree: Tree, leaf: str) -> SimpleNamespace:
        """What the template needs to add a tree's votes: a column, and from it each score's votes.

        With one score the column has the votes, unless the tree's leaf is stored; else it has the
        number of the leaf.
        """
        votes = [values.tolist() for values in scores_of(tree.votes)]
        column, node = self._stored.ident(leaf), leaf_number(self._layout, tree)
        if len(votes) == 1 and node not in self._leaves:
            value = at_leaf(self._layout, tree, votes[0], separate=True)
            return SimpleNamespace(column=column, value=value, votes=[column])
        entries = [Sql(f"{constants(values)}[{column} + 1]") for values in votes]
        return SimpleNamespace(column=column, value=self._leaves.get(node, node), votes=entries)

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        stored = self._stored
        shares = Shares.of(self._scores, scale.whole, stored.ident)
        nodes = [leaf_number(self._layout, tree) for tree in trees]
        codes = self._with_votes(dict(zip(nodes, trees, strict=True)))
        sql = render(
            "sum_gradients",
            codes=codes,
            node_class=stored.node_classes[0],
            classes=stored.classes,
            layers=shares.layers,
            shares=shares.by_class,
            whole=scale.whole,
            hessian_numerator=scale.hessian_numerator,
            hessian_denominator=scale.hessian_denominator,
            trees=[
                SimpleNamespace(
                    node=self._leaves.get(node, node), leaf=stored.ident(f"leaf{number}")
                )
                for number, node in enumerate(nodes)
            ],
        )
        found = stored.arrays(sql, step="sum_gradients")
        parts = [found[f"{part}{label}"] for label in shares.by_class for part in "gh"]
        return by_tree([tree.nodes for tree in trees], found["tree"], found["node"], parts)
