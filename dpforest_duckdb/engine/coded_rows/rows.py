"""The coded rows of a run inside DuckDB, as `CodedRows` says: counted, scored and routed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import (
    POINTS,
    Gradients,
    Splits,
)
from dpforest_duckdb.engine.coded_rows.class_counts import ClassCounts, RootCounts, counting
from dpforest_duckdb.engine.coded_rows.gradients import ScoredRows
from dpforest_duckdb.engine.coded_rows.leaves import constants, entry
from dpforest_duckdb.engine.coded_rows.mixed_votes import MixedVotes
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.connection.temp_space import SUM
from dpforest_duckdb.engine.shared.grids import dense, in_dimensions, symmetric
from dpforest_duckdb.engine.shared.mixture_points import MixturePoints
from dpforest_duckdb.sql import Column, Sql, render
from dpforest_duckdb.tree import Tree

MAX_SUMS = 1000  # of products, in one statement


@dataclass(frozen=True)
class LabelledTree:
    """A tree whose labels are counted: the `label` of a row is looked up in `labels` by its node,
    which is `shift` below the one in its node_class column; the root stays node 0.
    """

    node_class: Sql
    shift: int
    label: Sql
    labels: Sql


class DuckDBRows:
    """The coded rows of one run, in a TEMP table, read by the statements for `likely_rows` (0:
    unknown). `at_roots` are counts of the same rows at their roots.
    """

    def __init__(
        self, stored: StoredRows, likely_rows: int = 0, at_roots: RootCounts | None = None
    ) -> None:
        self._stored = stored
        known = {} if at_roots is None else at_roots
        self._class_counts = ClassCounts(stored, counting(likely_rows), known)
        self._scored = ScoredRows(stored)
        self._ident, self._layout = stored.ident, stored.layout
        self._classes, self._node_classes = stored.classes, stored.node_classes
        self._likely_rows = likely_rows

    def with_same_codes(
        self, copies: int, *, likely_rows: int = 0, owned: bool = False
    ) -> DuckDBRows:
        """The same rows at their roots, read by the statements for `likely_rows`.

        If the coded table is `owned`, it is dropped with them; then the rows here must not be used
        any more.
        """
        stored = self._stored.with_same_codes(copies, owned=owned)
        return DuckDBRows(stored, likely_rows, self._class_counts.at_roots)

    def count_classes(self, first: int, nodes: int) -> list[Integers]:
        return self._class_counts.by_value(first, nodes)

    def count_leaves(self, first: int, nodes: int) -> Integers:
        return self._class_counts.by_node(first, nodes)

    def count_pairs(self, attribute: int, bins: Sequence[int]) -> list[Integers]:
        return self._class_counts.by_pair(attribute, bins)

    def count_scores(self, votes: Sequence[Integers], cuts: Sequence[int]) -> Integers:
        sql = render(
            "count_scores",
            codes=self._stored.with_node_classes,
            node_classes=self._node_classes,
            classes=self._classes,
            scores=[
                Column(constants(values.tolist()), self._ident(f"score{number}"))
                for number, values in enumerate(votes)
            ],
            cuts=list(cuts),
        )
        found = self._stored.arrays(sql, step="count_scores")
        shape = (len(cuts) + 1,) * len(votes) + (self._classes,)
        keys = [found[f"bin{number}"] for number in range(len(votes))]
        return dense([*keys, found["class"]], found["rows"], shape)

    def sum_products(self, positions: Mapping[int, Integers]) -> Integers:
        places = [
            Column(entry(self._layout.code_of(attribute), values), self._ident(f"place{number}"))
            for number, (attribute, values) in enumerate(in_dimensions(positions))
        ]

        def sums(pairs: list[list[int]]) -> list[int]:
            sql = render("sum_products", codes=self._stored.codes, places=places, pairs=pairs)
            return list(self._stored.run(sql, step="sum_products")[0])

        most = max(1, min(MAX_SUMS, self._stored.at_once(SUM)))
        return symmetric(len(places), most, sums)

    def count_labels(self, trees: Sequence[Tree]) -> tuple[Integers, Integers, Integers]:
        walk = self._stored.at_roots(len(trees))
        try:
            return self._labels(walk, trees)
        finally:
            walk.drop()

    def _labels(
        self, walk: StoredRows, trees: Sequence[Tree]
    ) -> tuple[Integers, Integers, Integers]:
        """Walk down the trees depth by depth: as CASE, large trees take long to plan."""
        # node n of a tree is number shift + n, so that the roots are 0, 1, 2 …
        shifts = len(trees) - 1 + np.cumsum([0, *(tree.nodes - 1 for tree in trees)])
        nodes = int(shifts[-1]) + 1
        for splits in _by_depth(trees, shifts, self._layout.cells):
            walk.route(splits, nodes)
        columns = [self._ident(f"label{number}") for number in range(len(trees))]
        sql = render(
            "count_labels",
            codes=walk.with_node_classes,
            classes=self._classes,
            trees=[
                LabelledTree(
                    node_class=node_class,
                    shift=int(shift),
                    label=column,
                    labels=Sql(tree.labels.tolist()),
                )
                for node_class, shift, column, tree in zip(
                    walk.node_classes, shifts[:-1], columns, trees, strict=True
                )
            ],
        )
        found = self._stored.arrays(sql, step="count_labels")
        label_columns = [np.asarray(found[f"label{number}"]) for number in range(len(trees))]
        labels = np.stack(label_columns, axis=1).astype(np.int64)
        return labels, np.asarray(found["class"], np.int64), np.asarray(found["rows"], np.int64)

    def add_votes(self, trees: Sequence[Tree]) -> None:
        self._scored.add_votes(trees)

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        return self._scored.sum_gradients(trees, scale)

    def rate_mixtures(
        self, models: Sequence[Sequence[Tree]], mixtures: Sequence[Sequence[int]], one_in: int
    ) -> Integers:
        votes = MixedVotes.of(self._layout, models, mixtures, self._ident)
        sql = render(
            "rate_mixtures",
            codes=self._stored.codes,
            words=self._layout.words,
            one_in=one_in,
            grouped=self._many_are_equal(),
            node_class=self._node_classes[0],
            classes=self._classes,
            votes=votes,
            mixtures=range(len(mixtures)),
            points=MixturePoints.of(0, votes.odds, votes.scale, self._ident),
            whole=POINTS,
        )
        found = self._stored.arrays(sql, step="rate_mixtures")
        return dense([found["mixture"]], found["points"], (len(mixtures),))

    def _many_are_equal(self) -> bool:
        """Whether many rows are likely to be equal: if they are not, to group them takes longer
        than to rate each.
        """
        attributes = self._stored.domain.attributes
        combinations = math.prod(len(attribute.described) for attribute in attributes)
        return not self._likely_rows or 2 * combinations <= self._likely_rows

    def route(self, splits: Splits, nodes: int) -> None:
        self._stored.route(splits, nodes)
        self._class_counts.follow(splits)

    def drop(self) -> None:
        self._stored.drop()
        self._class_counts.forget()


def _by_depth(trees: Sequence[Tree], shifts: Integers, cells: Sequence[int]) -> list[Splits]:
    """The splits of several trees, depth by depth.

    Node n > 0 of a tree has the number `shifts[tree]` + n, and its root the number of the tree.
    """
    levels = [[np.unique(above) for _, above in tree.descents(cells)] for tree in trees]
    found = []
    for depth in range(max(map(len, levels))):
        parts = [
            np.stack(
                [
                    at + shift if depth else np.full(1, number),
                    tree.attribute[at],
                    tree.kind[at],
                    tree.cell[at],
                    tree.first[at] + shift,
                ]
            )
            for number, (tree, shift) in enumerate(zip(trees, shifts[:-1], strict=True))
            if depth < len(levels[number])
            for at in [levels[number][depth]]
        ]
        found.append(Splits(*np.concatenate(parts, axis=1).tolist()))
    return found
