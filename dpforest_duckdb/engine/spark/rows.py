"""The coded rows of a run inside Spark: the GROUP BYs.

A coded row has its codes in the bits of a few columns, its class, and a node of each tree. Codes of
all blocks have different numbers, so one explode and one GROUP BY count a whole depth. Splits and
votes are constants in the queries that need them. If there are too many constants, the rows are
stored again with their present nodes or scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import (
    MIXTURE_PARTS,
    POINTS,
    Coding,
    Gradients,
    Splits,
)
from dpforest_duckdb.engine.shared.copies import Copies
from dpforest_duckdb.engine.shared.exponentials import Shares
from dpforest_duckdb.engine.shared.grids import (
    by_tree,
    dense,
    in_dimensions,
    scored_classes,
    scores_of,
    symmetric,
)
from dpforest_duckdb.engine.shared.mixture_points import MixturePoints
from dpforest_duckdb.engine.shared.siblings import Siblings
from dpforest_duckdb.engine.spark.added_votes import AddedVotes
from dpforest_duckdb.engine.spark.layout import Layout
from dpforest_duckdb.engine.spark.leaves import Leaves
from dpforest_duckdb.engine.spark.steps import PrivateViews, Rows, Steps
from dpforest_duckdb.sql import Column, Sql, bracketed, nested, render
from dpforest_duckdb.tree import SCALE, Tree

MOST_LOOKUPS = 96  # in a query; Java runs much longer methods without compiling them
MOST_CONSTANTS = 2**17  # in a query, which holds them as text


@dataclass(frozen=True)
class SourceView:
    """A view of the rows to encode, and its column with the hash of each row."""

    view: Sql
    row_hash: Sql


@dataclass(frozen=True)
class BinnedScore:
    """A score, the `bin` that it is counted by, and the votes of the nodes that it is a sum of."""

    column: Sql
    bin: Sql
    votes: Sql


@dataclass(frozen=True)
class LabelledTree:
    """A tree whose labels are counted: the column of its leaf, and the label of each node."""

    column: Sql
    leaf: Sql
    labels: Sql


class SparkRows:
    """The coded rows of one run: words of codes, `class`, a node column per tree, and scores."""

    def __init__(self, steps: Steps, views: PrivateViews, domain: Domain, copies: int) -> None:
        self._steps, self._views, self._domain = steps, views, domain
        self._ident = steps.dialect.ident
        self._classes = len(domain.classes)
        self._layout = Layout(domain.cells, self._classes, self._ident)
        self._nodes = [self._ident(f"node{copy}") for copy in range(copies)]
        self._leaves = list[Leaves]()
        self._view = Sql("")
        self._scores = [self._ident(f"score{label}") for label in scored_classes(self._classes)]
        self._added = AddedVotes(self._layout, self._scores, steps.dialect)
        self._stored = {0}  # the node columns that the stored rows have
        self._routed = False
        self._siblings = Siblings(domain.cells)

    def encode(self, source: SourceView, table: TableInfo, coding: Coding) -> None:
        dialect, domain, unit = self._steps.dialect, self._domain, coding.unit
        roots = range(coding.parts) if len(self._nodes) == 1 else None
        self._leaves = [Leaves.at(self._layout, roots or [n]) for n in range(len(self._nodes))]
        labelled, leaves = None, list[Sql]()
        if coding.first_phase:
            labelled, leaves = self._walked(Sql("kept"), coding.first_phase)
        codes = [
            dialect.code(attribute, self._compared(attribute.column, number))
            for number, attribute in enumerate(domain.attributes)
        ]
        sql = render(
            "spark/encode",
            words=list(map(Column, self._layout.packed(codes), self._layout.words)),
            unit=dialect.unit("t", unit, table.columns),
            row_hash=source.row_hash,
            source=source.view,
            labelled=labelled,
            wrongs=[
                Sql(f"{self._get(tree.labels.tolist(), leaf)} <> `class`")
                for tree, leaf in zip(coding.first_phase, leaves, strict=True)
            ],
            misclassified_weight=coding.misclassified_weight,
            bootstrap=coding.sample == "bootstrap",
            parts=coding.parts,
            **{
                "class": dialect.class_code(
                    domain.classes, domain.target_type, self._ident("t", domain.target)
                )
            },
        )
        # the salt is a parameter, so that it is not in the statements that are shown
        frame = self._steps.frame(sql, {"salt": coding.salt}, step="encode")
        self._view = self._views.stored(frame, "encode")

    def _compared(self, column: str, number: int) -> Sql:
        """A column as scoring compares it."""
        return self._steps.dialect.input(self._domain.attributes[number], self._ident("t", column))

    def _get(self, values: Sequence[int], node: Sql, kind: str = "INT") -> Sql:
        """The value of a node, from a constant array; NULL outside of it."""
        return Sql(f"get({self._steps.dialect.numbers(values, kind)}, {node})")

    @property
    def _copies(self) -> Copies:
        """Which of the trees are counted."""
        return Copies(len(self._nodes), self._routed)

    def _node(self, copy: int, places: Integers | None = None) -> Sql:
        """The node of a row in one of the trees; or `places[node]`, which is 0 beyond its end."""
        leaves, values = self._leaves[copy], None
        if places is not None:
            inside = leaves.nodes < len(places)
            values = np.where(inside, places[np.where(inside, leaves.nodes, 0)], 0)
        return leaves.sql(self._nodes[copy], self._steps.dialect.numbers, values)

    def _with_nodes(self) -> Sql:
        """The rows with the present node of every tree."""
        nodes = [Column(self._node(n), column) for n, column in enumerate(self._nodes)]
        words = self._layout.words
        return nested("spark/with_nodes", words=words, nodes=nodes, codes=self._view)

    def _one_node(self, places: Integers | None = None) -> Sql:
        nodes = [self._node(copy, places) for copy in range(self._copies.counted)]
        words = self._layout.words
        return nested("spark/nodes", words=words, nodes=nodes, codes=self._view)

    def count_classes(self, first: int, nodes: int) -> list[Integers]:
        nodes = self._copies.nodes(nodes)
        wanted = self._siblings.counted(first, nodes)
        places = np.zeros(first + nodes, dtype=np.int64)
        places[wanted] = wanted - first + 1
        layout = self._layout
        size = int(layout.starts[-1])
        sql = render(
            "spark/count_classes",
            nodes=self._one_node(places),
            codes=[Sql(f"{layout.code(n)} + {s}") for n, s in enumerate(layout.starts[:-1])],
            classes=self._classes,
            size=size,
        )
        group, rows = self._numbers(self._steps.rows(sql, step="count_classes"), 2)
        node_class, code = np.divmod(group, size)
        counts = list[Integers]()
        for block, low in zip(layout.blocks, layout.starts, strict=False):
            mine = (code >= low) & (code < low + block.size)
            tables = block.marginals(
                code[mine] - low, node_class[mine], rows[mine], nodes, self._classes
            )
            counts += map(self._copies.of_all, tables)
        self._siblings.fill(counts, first)
        return counts

    def count_leaves(self, first: int, nodes: int) -> Integers:
        sql = render("spark/count_leaves", nodes=self._one_node())
        node, label, rows = self._numbers(self._steps.rows(sql, step="count_leaves"), 3)
        wanted = node >= first
        keys = [node[wanted] - first, label[wanted]]
        shape = (self._copies.nodes(nodes), self._classes)
        return self._copies.of_all(dense(keys, rows[wanted], shape))

    def count_scores(self, votes: Sequence[Integers], cuts: Sequence[int]) -> Integers:
        bins = [self._ident(f"bin{number}") for number in range(len(votes))]
        numbers = self._steps.dialect.numbers
        sql = render(
            "spark/count_scores",
            codes=self._with_nodes(),
            nodes=self._nodes,
            scores=[
                BinnedScore(
                    column=self._ident(f"score{number}"),
                    bin=column,
                    votes=numbers(votes[number].tolist(), "BIGINT"),
                )
                for number, column in enumerate(bins)
            ],
            bins=bins,
            cuts=list(cuts),
        )
        *keys, rows = self._numbers(self._steps.rows(sql, step="count_scores"), len(votes) + 2)
        return dense(keys, rows, (len(cuts) + 1,) * len(votes) + (self._classes,))

    def count_pairs(self, attribute: int, bins: Sequence[int]) -> list[Integers]:
        sizes, layout = self._domain.cells, self._layout
        sql = render(
            "spark/count_pairs",
            codes=self._view,
            first=self._get(list(bins), layout.cell(attribute), "INT"),
            others=[Sql(f"{layout.cell(n)} + {layout.offsets[n]}") for n in range(len(sizes))],
        )
        first, second, label, rows = self._numbers(self._steps.rows(sql, step="count_pairs"), 4)
        counts = []
        for other, size in enumerate(sizes):
            low, high = layout.offsets[other], layout.offsets[other + 1]
            mine = (second >= low) & (second < high)
            keys = [first[mine], second[mine] - low, label[mine]]
            counts.append(dense(keys, rows[mine], (max(bins) + 1, size, self._classes)))
        return counts

    def sum_products(self, positions: Mapping[int, Integers]) -> Integers:
        places = [
            Column(
                self._get(values, self._layout.cell(attribute), "BIGINT"),
                self._ident(f"place{number}"),
            )
            for number, (attribute, values) in enumerate(in_dimensions(positions))
        ]

        def sums(pairs: list[list[int]]) -> list[int]:
            sql = render("spark/sum_products", codes=self._view, places=places, pairs=pairs)
            return list(self._steps.rows(sql, step="sum_products")[0])

        return symmetric(len(places), MOST_LOOKUPS, sums)

    def count_labels(self, trees: Sequence[Tree]) -> tuple[Integers, Integers, Integers]:
        walked, leaves = self._walked(self._view, trees)
        sql = render(
            "spark/count_labels",
            codes=walked,
            trees=[
                LabelledTree(
                    column=self._ident(f"label{number}"),
                    leaf=leaf,
                    labels=self._steps.dialect.numbers(tree.labels.tolist()),
                )
                for number, (tree, leaf) in enumerate(zip(trees, leaves, strict=True))
            ],
        )
        found = self._numbers(self._steps.rows(sql, step="count_labels"), len(trees) + 2)
        return np.stack(found[:-2], axis=1), found[-2], found[-1]

    def add_votes(self, trees: Sequence[Tree]) -> None:
        self._added.add(trees)
        if self._added.lookups > MOST_LOOKUPS:
            frame = self._steps.frame(self._added.sql(self._view), step="add_votes")
            self._view = self._views.stored(frame, "add_votes", self._view)
            self._added.stored()

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        shares = Shares.of(self._scores, scale.whole, self._ident)
        sql = render(
            "spark/sum_gradients",
            codes=bracketed(self._added.sql(self._view)),
            leaves=list(map(self._leaf, trees)),
            layers=shares.layers,
            shares=shares.by_class,
            whole=scale.whole,
            hessian_numerator=scale.hessian_numerator,
            hessian_denominator=scale.hessian_denominator,
        )
        tree, node, *parts = self._numbers(
            self._steps.rows(sql, step="sum_gradients"), 2 + 2 * len(shares.by_class)
        )
        return by_tree([each.nodes for each in trees], tree, node, parts)

    def rate_mixtures(
        self, models: Sequence[Sequence[Tree]], mixtures: Sequence[Sequence[int]], one_in: int
    ) -> Integers:
        words = self._layout.words
        alike = nested("spark/distinct_rows", codes=self._view, words=words, one_in=one_in)
        trees = [tree for model in models for tree in model]
        walked, leaves = self._walked(alike, trees)
        at = iter(leaves)
        scored = [[(tree, next(at)) for tree in model] for model in models]
        sql = render(
            "spark/rate_mixtures",
            codes=walked,
            models=[
                Column(self._sum_of(model, label), self._ident(f"s{number}_{label}"))
                for number, model in enumerate(scored)
                for label in range(self._classes)
            ],
            mixtures=[
                MixturePoints.of(number, self._mixed(number, weights), SCALE, self._ident)
                for number, weights in enumerate(mixtures)
            ],
            whole=POINTS,
        )
        (points,) = self._steps.rows(sql, step="rate_mixtures")
        return np.array(points, dtype=np.int64)

    def _mixed(self, number: int, weights: Sequence[int]) -> list[Column]:
        """The log-odds of each class in a mixture."""
        found = []
        for label in range(self._classes):
            terms = [f"{w} * {self._ident(f's{n}_{label}')}" for n, w in enumerate(weights) if w]
            odds = Sql(f"({' + '.join(terms)}) / {MIXTURE_PARTS}e0")
            found.append(Column(odds, self._ident(f"z{number}_{label}")))
        return found

    def _sum_of(self, model: Sequence[tuple[Tree, Sql]], label: int) -> Sql:
        """A model's score of a class: the sum of its trees' votes; the first of two has 0."""
        score = label - 1 if self._classes == 2 else label
        terms = [
            self._get(scores_of(tree.votes)[score].tolist(), leaf, "BIGINT")
            for tree, leaf in model
            if score >= 0
        ]
        return Sql(" + ".join(terms) or "CAST(0 AS BIGINT)")

    def route(self, splits: Splits, nodes: int) -> None:
        self._siblings.follow(splits)
        if not splits.node:
            return
        parts = (splits.node, splits.attribute, splits.kind, splits.cell, splits.first)
        arrays = list(map(np.array, parts))
        found = [leaves.split(*arrays) for leaves in self._leaves]
        lookups, constants = (
            sum(leaves.lookups for leaves in found),
            sum(leaves.constants for leaves in found if leaves.moved),
        )
        if lookups > MOST_LOOKUPS or constants > MOST_CONSTANTS:
            self._store_nodes()
            found = [leaves.split(*arrays) for leaves in self._leaves]
        self._leaves = found
        self._routed = True

    def _store_nodes(self) -> None:
        """Store the rows with their present nodes, from which later splits start."""
        while copies := [n for n, leaves in enumerate(self._leaves) if leaves.moved]:
            lookups = np.cumsum([self._leaves[copy].lookups for copy in copies])
            now = copies[: max(1, int((lookups <= MOST_LOOKUPS).sum()))]
            sql = render(
                "spark/route",
                codes=self._view,
                replaced=[self._nodes[copy] for copy in now if copy in self._stored],
                nodes=[Column(self._node(copy), self._nodes[copy]) for copy in now],
            )
            frame = self._steps.frame(sql, step="route")
            self._view = self._views.stored(frame, "route", self._view)
            self._stored.update(now)
            for copy in now:
                self._leaves[copy] = Leaves.at(self._layout, self._leaves[copy].nodes)

    def _leaf(self, tree: Tree) -> Sql:
        """The leaf of a tree that a row falls into."""
        return Leaves.of(self._layout, tree).sql(Sql("0"), self._steps.dialect.numbers)

    def _walked(self, source: Sql, trees: Sequence[Tree]) -> tuple[Sql, list[Sql]]:
        """Rows with the leaf of each tree, and the leaves' columns."""
        columns = [self._ident(f"leaf{number}") for number in range(len(trees))]
        leaves = [Column(self._leaf(tree), c) for tree, c in zip(trees, columns, strict=True)]
        return nested("spark/with_leaves", leaves=leaves, source=source), columns

    def _numbers(self, rows: Rows, columns: int) -> list[Integers]:
        """The columns of fetched rows."""
        return list(np.array(rows, dtype=np.int64).reshape(-1, columns).T)

    def drop(self) -> None:
        self._views.drop(self._view)
        self._siblings.forget()
