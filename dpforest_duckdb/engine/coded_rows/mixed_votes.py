"""The columns of a statement that look up the votes of several models and mix them.

Votes are packed (see `packed_votes`): one look-up gives a row a tree's votes for several classes,
and one sum mixes them. All votes are released figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpforest_duckdb.engine.base import MIXTURE_PARTS
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.leaves import LookUps, constants
from dpforest_duckdb.engine.coded_rows.packed_votes import PackedVotes
from dpforest_duckdb.sql import Column, Ident, Sql, summed
from dpforest_duckdb.tree import SCALE, Tree


@dataclass(frozen=True)
class MixedVotes:
    """Six layers of columns: the number of a row's values of `roots` at which all trees begin, if
    there are any; the `places` in the list `votes` that belong to a row's codes; `packed` sums of
    votes there, of the trees that the same models have; `mixed` sums of these, by the column
    `mixture`; their `halves`, if they have any; from them the `odds` of each class, in units of
    1 / `scale`.
    """

    roots: list[Column]
    votes: Sql
    places: list[Column]
    packed: list[Column]
    mixed: list[Column]
    halves: list[Column]
    odds: list[Column]
    scale: int

    @staticmethod
    def of(
        layout: Layout,
        models: Sequence[Sequence[Tree]],
        mixtures: Sequence[Sequence[int]],
        ident: Ident,
    ) -> MixedVotes:
        """The columns for mixtures with a weight for each model; models are lists of trees."""
        root = ident("root")
        looked_up = LookUps.of(layout, models, root)
        groups = looked_up.groups
        weights = [
            [sum(mixture[user] for user in users) for users in groups] for mixture in mixtures
        ]
        found = list(groups.values())
        scale = MIXTURE_PARTS * SCALE
        packed = PackedVotes.of([[votes for _, votes in group] for group in found], weights, scale)
        assert packed.unit % MIXTURE_PARTS == 0, "weighted votes are whole numbers"
        places = dict.fromkeys(place for group in found for place, _ in group)
        names = {place: ident(f"place{number}") for number, place in enumerate(places)}
        sums, mixed = list[Column](), list[Column]()
        for word, parts in enumerate(packed.words):
            columns = {group: ident(f"packed{group}_{word}") for group in parts}
            for group, look_up in parts.items():
                terms = [
                    f"{ident('votes')}[{names[found[group][number][0]]} + {first + 1}]"
                    for number, first in look_up
                ]
                sums.append(Column(summed(terms), columns[group]))
            cases = " ".join(
                f"WHEN {number} THEN {_weighed(columns, of_mixture)}"
                for number, of_mixture in enumerate(weights)
            )
            mixed.append(Column(Sql(f"CASE {ident('mixture')} {cases} END"), ident(f"mixed{word}")))
        halves = packed.halves(mixed, ident)
        odds = [
            Column(Sql(f"CAST({votes} AS DOUBLE)"), ident(f"z{label}"))
            for label, votes in enumerate(packed.of_classes(halves or mixed))
        ]
        return MixedVotes(
            roots=[Column(layout.combination(looked_up.roots), root)] if looked_up.roots else [],
            votes=constants(packed.votes, packed.type),
            places=[Column(place, name) for place, name in names.items()],
            packed=sums,
            mixed=mixed,
            halves=halves,
            odds=odds,
            scale=scale // packed.unit,
        )


def _weighed(columns: Mapping[int, Sql], weights: Sequence[int]) -> Sql:
    """The sum of the groups' columns times their weights."""
    by_weight = dict[int, list[str]]()
    for group, column in columns.items():
        by_weight.setdefault(weights[group], []).append(column)
    terms = [f"{weight} * ({' + '.join(some)})" for weight, some in by_weight.items() if weight]
    return Sql(" + ".join(terms) or "0")
