"""The columns of a statement that adds the votes of trees to the scores of rows.

All votes are released figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.leaves import at_leaf, constants, leaf_number
from dpforest_duckdb.engine.coded_rows.packed_votes import PackedVotes
from dpforest_duckdb.engine.shared.grids import scores_of
from dpforest_duckdb.sql import Column, Ident, Sql
from dpforest_duckdb.tree import SCALE, Tree


@dataclass(frozen=True)
class VotingTree:
    """A tree whose votes are added, and the column with a row's leaf, if it is stored."""

    tree: Tree
    stored: Sql | None


@dataclass(frozen=True)
class AddedVotes:
    """Layers of columns, and from them the `terms` that are added to each score."""

    layers: list[list[Column]]
    terms: list[list[Sql]]

    @staticmethod
    def to_one_score(layout: Layout, trees: Sequence[VotingTree], ident: Ident) -> AddedVotes:
        """One layer with the vote of each tree, as a CASE over the codes or by the stored leaf."""
        votes = list[Column]()
        for number, voting in enumerate(trees):
            values = scores_of(voting.tree.votes)[0].tolist()
            vote = (
                at_leaf(layout, voting.tree, values, separate=True)
                if voting.stored is None
                else Sql(f"{constants(values)}[{voting.stored} + 1]")
            )
            votes.append(Column(vote, ident(f"vote{number}")))
        return AddedVotes([votes], [[vote.name for vote in votes]])

    @staticmethod
    def to_scores(layout: Layout, trees: Sequence[VotingTree], ident: Ident) -> AddedVotes:
        """Layers with the numbers of leaves, the sums of packed votes there (see `packed_votes`),
        and the halves of these sums, if they have any.

        One look-up gives a tree's votes for several classes. All scores of a row may become higher
        by the same number; this changes no share of a class.
        """
        leaves = [voting.stored or leaf_number(layout, voting.tree) for voting in trees]
        names = {leaf: ident(f"leaf{number}") for number, leaf in enumerate(dict.fromkeys(leaves))}
        votes = [voting.tree.votes for voting in trees]
        packed = PackedVotes.of([votes], [[1]], SCALE)
        words = list[Column]()
        for number, look_ups in enumerate(packed.words):
            terms = [
                f"{constants(packed.votes[first : first + len(votes[tree])], packed.type)}"
                f"[{names[leaves[tree]]} + 1]"
                for tree, first in look_ups.get(0, [])
            ]
            words.append(Column(Sql(" + ".join(terms) or "0"), ident(f"packed{number}")))
        halves = packed.halves(words, ident)
        layers = [[Column(leaf, name) for leaf, name in names.items()], words, halves]
        of_classes = packed.of_classes(halves or words)
        return AddedVotes(layers, [[Sql(f"({votes}) * {packed.unit}")] for votes in of_classes])
