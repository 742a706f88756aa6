"""The scores of coded rows in DuckDB: votes are added, and gradients at the scores are summed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Gradients
from dpforest_duckdb.engine.coded_rows.added_votes import AddedVotes, VotingTree
from dpforest_duckdb.engine.coded_rows.bit_sets import BitSets
from dpforest_duckdb.engine.coded_rows.leaves import in_grid, leaf_number, narrow
from dpforest_duckdb.engine.coded_rows.lower_levels import LowerLevels
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.shared.exponentials import Shares
from dpforest_duckdb.engine.shared.grids import by_tree, scored_classes
from dpforest_duckdb.sql import Column, Sql, nested, render
from dpforest_duckdb.tree import LEAF, Tree

MAX_UNSTORED = 3  # trees whose votes every statement looks up again; with more, scores are stored

_Splits = tuple[bytes, ...]


class ScoredRows:
    """Stored rows with a score for each class, or for the second of two."""

    def __init__(self, stored: StoredRows) -> None:
        self._stored = stored
        self._layout = stored.layout
        self._scores = [stored.ident(f"score{label}") for label in scored_classes(stored.classes)]
        self._scored = False
        self._unstored: list[Tree] = []  # whose votes are not in the stored scores
        self._leaves: dict[_Splits, Sql] = {}  # columns of stored leaves

    def add_votes(self, trees: Sequence[Tree]) -> None:
        self._unstored += trees  # until the scores are read

    def _with_votes(self, trees: Sequence[Tree]) -> Sql:
        """The coded rows with their scores, for a statement that needs the leaves of `trees`.

        Votes that are not stored yet are added in the statement, if they are those of at most
        MAX_UNSTORED trees, and the leaves of all trees are sums of codes (see `in_grid`).
        """
        large = [tree for tree in trees if not in_grid(self._layout, tree)]
        cheap = not large and all(in_grid(self._layout, tree) for tree in self._unstored)
        if not self._scored or not cheap or len(self._unstored) > MAX_UNSTORED:
            self._store_votes(large)
        if not self._unstored:
            return self._stored.codes
        return nested("add_votes", made=None, leaves=[], **self._added([], []))

    def _store_votes(self, trees: Sequence[Tree]) -> None:
        """Store the scores with all votes, and the leaves of the `trees` that are summed next.

        So leaves need not be found again when the votes of these trees are added: DuckDB takes long
        to plan a statement with large trees.
        """
        below, leaves, columns = list[list[list[Column]]](), list[Column](), dict[_Splits, Sql]()
        for number, tree in enumerate(trees):
            layers, node = self._found(tree, number)
            column = self._stored.ident(f"next{number}")
            below.append(layers)
            leaves.append(Column(narrow(node, tree), column))
            columns[_splits(tree)] = column
        beside = [list(chain.from_iterable(each)) for each in zip_longest(*below, fillvalue=[])]
        self._stored.replace("add_votes", leaves=leaves, **self._added(trees, beside))
        self._scored, self._unstored, self._leaves = True, [], columns

    def _found(self, tree: Tree, number: int) -> tuple[list[list[Column]], Sql]:
        """Layers of columns, and from them the leaf of a row: in the way that is fastest."""
        sets = BitSets.of(self._layout, tree, self._stored.ident, f"left{number}")
        if sets:
            return [sets.words], sets.node
        lower = LowerLevels.of(self._layout, tree, self._stored.ident, f"lower{number}")
        if lower:
            return lower.layers, lower.node
        return [], leaf_number(self._layout, tree)

    def _added(self, trees: Sequence[Tree], layers: list[list[Column]]) -> dict[str, Any]:
        """What the template needs to add the votes that are not stored. The leaves of `trees` are
        found in the same statement, from their cells and the `layers` above these.
        """
        unknown = [tree for tree in self._unstored if _splits(tree) not in self._leaves]
        large = [tree for tree in [*unknown, *trees] if not in_grid(self._layout, tree)]
        used = {a for tree in large for a in tree.attribute[tree.kind != LEAF].tolist()}
        cells = [Column(self._layout.code_of(a), self._layout.separate[a]) for a in sorted(used)]
        votes = self._votes()
        return {
            "codes": self._stored.codes,
            "columns": [*self._layout.words, *self._stored.node_classes],
            "scores": self._scores,
            "scored": self._scored,
            "terms": votes.terms,
            "layers": [layer for layer in (cells, *layers, *votes.layers) if layer],
        }

    def _votes(self) -> AddedVotes:
        """What is added to the scores: the votes that are not stored."""
        if not self._unstored:
            return AddedVotes([], [[] for _ in self._scores])
        add = AddedVotes.to_one_score if len(self._scores) == 1 else AddedVotes.to_scores
        trees = [VotingTree(tree, self._leaves.get(_splits(tree))) for tree in self._unstored]
        return add(self._layout, trees, self._stored.ident)

    def _leaf(self, tree: Tree) -> Sql:
        """The number of a row's leaf: a stored column, or else from the row's codes."""
        stored = self._leaves.get(_splits(tree))
        return stored or narrow(leaf_number(self._layout, tree), tree)

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        stored = self._stored
        shares = Shares.of(self._scores, scale.whole, stored.ident)
        codes = self._with_votes(trees)
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
                Column(self._leaf(tree), stored.ident(f"leaf{number}"))
                for number, tree in enumerate(trees)
            ],
        )
        found = stored.arrays(sql, step="sum_gradients")
        parts = [found[f"{part}{label}"] for label in shares.by_class for part in "gh"]
        return by_tree([tree.nodes for tree in trees], found["tree"], found["node"], parts)


def _splits(tree: Tree) -> _Splits:
    """The splits of a tree: trees with the same ones have the same leaves."""
    return tuple(each.tobytes() for each in (tree.kind, tree.attribute, tree.cell, tree.first))
