"""The coded rows of a run inside Spark: the GROUP BYs.

A coded row has an array of cells, its class, and a node of each tree. A cell has one number for all
attributes, so one explode and one GROUP BY count a whole depth. The coded rows are stored after
every routing. Votes are added by the queries that need scores, and are stored when there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import (
    MIXTURE_PARTS,
    POINTS,
    Gradients,
    Sample,
    Splits,
)
from dpforest_duckdb.engine.siblings import Spared, spared
from dpforest_duckdb.engine.spark.added_votes import AddedVotes, scores_of
from dpforest_duckdb.engine.spark.exact import mixed, power_of, worst_loss
from dpforest_duckdb.engine.spark.leaves import Leaves
from dpforest_duckdb.engine.spark.steps import PrivateViews, Rows, Steps
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.tree import EQUALS, MULTIWAY, SCALE, THRESHOLD, Tree

MOST_ROUTED = 12  # trees in a query; Java does not compile much longer methods
MOST_LOOKUPS = 128  # of added votes in a query, for the same reason
_NO_COUNTS: tuple[list[Integers], int] = ([np.zeros((0, 0, 0), np.int64)], 0)


@dataclass(frozen=True)
class Source:
    """A view of the rows to encode, and the column with the hash of a row, if it has one."""

    view: Sql
    row_hash: Sql | None


class SparkRows:
    """The coded rows of one run: `cells`, `class`, a node column per tree, and scores."""

    def __init__(self, steps: Steps, views: PrivateViews, domain: Domain, copies: int) -> None:
        self._steps, self._views, self._domain = steps, views, domain
        self._ident = steps.dialect.ident
        self._classes = len(domain.classes)
        self._offsets = np.cumsum([0, *domain.cells])
        self._nodes = [self._ident(f"node{copy}") for copy in range(copies)]
        self._view = Sql("")
        self._leaves = Leaves(domain.cells, steps.dialect.numbers)
        scored = range(self._classes) if self._classes > 2 else [1]
        self._scores = [self._ident(f"score{label}") for label in scored]
        self._added = AddedVotes(self._leaves, self._scores, steps.dialect)
        self._routed = False
        self._last_counts = _NO_COUNTS
        self._spared: Spared | None = None

    def encode(
        self,
        source: Source,
        table: TableInfo,
        unit: PrivacyUnit,
        *,
        parts: int,
        sample: Sample,
        salt: int,
        first_phase: Sequence[Tree],
        misclassified_weight: int,
    ) -> None:
        dialect = self._steps.dialect
        by_column = None
        if unit.column != "row":
            name = self._ident("t", unit.column)
            canonical = dialect.canonical_unit(name, table.columns[unit.column])
            by_column = SimpleNamespace(canonical=canonical, rows=unit.rows)
        walked, leaves = self._walked(Sql("kept"), first_phase)
        labels = [tree.votes.argmax(axis=1).tolist() for tree in first_phase]
        sql = render(
            "spark/encode",
            codes=[
                SimpleNamespace(
                    code=dialect.code(attribute, self._compared(attribute.column, number)),
                    offset=int(self._offsets[number]),
                )
                for number, attribute in enumerate(self._domain.attributes)
            ],
            unit=by_column,
            row_hash=source.row_hash,
            source=source.view,
            labelled=walked if first_phase else None,
            wrongs=[
                Sql(f"{self._get(each, leaf)} <> `class`")
                for each, leaf in zip(labels, leaves, strict=True)
            ],
            misclassified_weight=misclassified_weight,
            bootstrap=sample == "bootstrap",
            parts=parts,
            **{
                "class": dialect.class_code(
                    self._domain.classes,
                    self._domain.target_type,
                    self._ident("t", self._domain.target),
                )
            },
        )
        # the salt is a parameter, so that it is not in the statements that are shown
        frame = self._steps.frame(sql, {"salt": salt}, step="encode")
        self._view = self._views.stored(frame, "encode")

    def _compared(self, column: str, number: int) -> Sql:
        """A column as scoring compares it."""
        return self._steps.dialect.input(self._domain.attributes[number], self._ident("t", column))

    def _get(self, values: Sequence[int], node: Sql, kind: str = "INT") -> Sql:
        """The value of a node, from a constant array; NULL outside of it."""
        return Sql(f"get({self._steps.dialect.numbers(values, kind)}, {node})")

    @property
    def _counted(self) -> list[Sql]:
        """The node columns to count: one before the first routing, because all are still equal."""
        return self._nodes if self._routed else self._nodes[:1]

    def _of_all_copies(self, counts: Integers) -> Integers:
        """The counts of every copy's root, from those of the first copy."""
        return counts if self._routed else np.repeat(counts, len(self._nodes), axis=0)

    def _with_nodes(self) -> Sql:
        """The rows with a node for every tree: only one is stored, because all start equal."""
        if self._routed or len(self._nodes) == 1:
            return self._view
        others = [f"{self._nodes[0]} + {n} AS {c}" for n, c in enumerate(self._nodes) if n]
        return Sql(f"(SELECT *, {', '.join(others)} FROM {self._view})")

    def _one_node(self, nodes: Sequence[Sql]) -> Sql:
        return Sql(f"({render('spark/nodes', nodes=nodes, codes=self._view)})")

    def count_classes(self, first: int, nodes: int) -> list[Integers]:
        nodes = nodes if self._routed else nodes // len(self._nodes)
        wanted = self._spared.counted(first, nodes) if self._spared else []
        flags = np.isin(np.arange(first, first + nodes), wanted).astype(int).tolist()
        cells = int(self._offsets[-1])
        sql = render(
            "spark/count_classes",
            nodes=self._one_node(self._counted),
            first=first,
            classes=self._classes,
            cells=cells,
            wanted=self._steps.dialect.numbers(flags) if wanted else None,
        )
        found = self._numbers(self._steps.rows(sql, step="count_classes"), 2)
        flat = np.zeros(nodes * self._classes * cells, dtype=np.int64)
        flat[found[0]] = found[1]
        grid = flat.reshape(nodes, self._classes, cells)
        counts = [
            self._of_all_copies(grid[:, :, low:high].transpose(0, 2, 1).copy())
            for low, high in zip(self._offsets[:-1], self._offsets[1:], strict=True)
        ]
        if self._spared:
            self._spared.fill(counts, first, *self._last_counts)
        self._last_counts, self._spared = (counts, first), None
        return counts

    def count_leaves(self, first: int, nodes: int) -> Integers:
        nodes = nodes if self._routed else nodes // len(self._nodes)
        sql = render("spark/count_leaves", nodes=self._one_node(self._counted), first=first)
        node, label, rows = self._numbers(self._steps.rows(sql, step="count_leaves"), 3)
        counts = np.zeros((nodes, self._classes), dtype=np.int64)
        counts[node - first, label] = rows
        return self._of_all_copies(counts)

    def count_scores(self, votes: Sequence[Integers], cuts: Sequence[int]) -> Integers:
        bins = [self._ident(f"bin{number}") for number in range(len(votes))]
        numbers = self._steps.dialect.numbers
        sql = render(
            "spark/count_scores",
            codes=self._with_nodes(),
            nodes=self._nodes,
            scores=[
                SimpleNamespace(
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
        counts = np.zeros((len(cuts) + 1,) * len(votes) + (self._classes,), dtype=np.int64)
        counts[tuple(keys)] = rows
        return counts

    def count_pairs(self) -> dict[tuple[int, int], Integers]:
        sizes, counts = self._domain.cells, {}
        total = len(sizes)
        for one in range(total - 1):
            sql = render(
                "spark/count_pairs", codes=self._view, attribute=one, later=total - one - 1
            )
            first, second, label, rows = self._numbers(self._steps.rows(sql, step="count_pairs"), 4)
            for other in range(one + 1, total):
                table = np.zeros((sizes[one], sizes[other], self._classes), dtype=np.int64)
                low, high = self._offsets[other], self._offsets[other + 1]
                mine = (second >= low) & (second < high)
                table[first[mine] - self._offsets[one], second[mine] - low, label[mine]] = rows[
                    mine
                ]
                counts[one, other] = table
        return counts

    def count_labels(self, trees: Sequence[Tree]) -> tuple[Integers, Integers, Integers]:
        walked, leaves = self._walked(self._view, trees)
        sql = render(
            "spark/count_labels",
            codes=walked,
            trees=[
                SimpleNamespace(
                    column=self._ident(f"label{number}"),
                    leaf=leaf,
                    labels=self._steps.dialect.numbers(tree.votes.argmax(axis=1).tolist()),
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
        labels = range(self._classes) if self._classes > 2 else range(1, 2)
        scores = [*([Sql("0")] if self._classes == 2 else []), *self._scores]
        sql = render(
            "spark/sum_gradients",
            codes=Sql(f"({self._added.sql(self._view)})"),
            leaves=list(map(self._leaves.node, trees)),
            powers=[
                power_of(scores, number, SCALE, self._ident, self._element)
                for number in range(len(scores))
            ],
            labels=list(labels),
            whole=scale.whole,
            steep=scale.steep,
            flat=scale.flat,
        )
        tree, node, *parts = self._numbers(
            self._steps.rows(sql, step="sum_gradients"), 2 + 2 * len(labels)
        )
        sums = []
        for number, each in enumerate(trees):
            mine = tree == number
            dense = np.zeros((each.nodes, len(parts)), dtype=np.int64)
            dense[node[mine]] = np.stack([part[mine] for part in parts], axis=1)
            sums.append(dense)
        return sums

    def rate_mixtures(
        self, models: Sequence[Sequence[Tree]], mixtures: Sequence[Sequence[int]], one_in: int
    ) -> Integers:
        alike = render("spark/distinct_rows", codes=self._view, one_in=one_in)
        trees = [tree for model in models for tree in model]
        walked, leaves = self._walked(Sql(f"({alike})"), trees)
        at = iter(leaves)
        scored = [[(tree, next(at)) for tree in model] for model in models]
        sql = render(
            "spark/rate_mixtures",
            codes=walked,
            models=[
                SimpleNamespace(
                    column=self._ident(f"s{number}_{label}"), value=self._sum_of(model, label)
                )
                for number, model in enumerate(scored)
                for label in range(self._classes)
            ],
            mixtures=[
                mixed(number, weights, self._classes, self._ident, self._element)
                for number, weights in enumerate(mixtures)
            ],
            scale=MIXTURE_PARTS * SCALE,
            whole=POINTS,
            worst=worst_loss(self._classes),
        )
        (points,) = self._steps.rows(sql, step="rate_mixtures")
        return np.array(points, dtype=np.int64)

    def _sum_of(self, model: Sequence[tuple[Tree, Sql]], label: int) -> Sql:
        """A model's score of a class: the sum of its trees' votes; the first of two has 0."""
        score = label - 1 if self._classes == 2 else label
        terms = [
            self._get(scores_of(tree.votes)[score].tolist(), leaf, "BIGINT")
            for tree, leaf in model
            if score >= 0
        ]
        return Sql(" + ".join(terms) or "CAST(0 AS BIGINT)")

    def _element(self, values: Sequence[float], index: Sql) -> Sql:
        """The element of a constant list, counted from 0."""
        return Sql(f"get({self._steps.dialect.numbers(values, 'DOUBLE')}, {index})")

    def route(self, splits: Splits, nodes: int) -> None:
        self._spared = self._spares(splits)
        if not splits.node:
            return
        arrays = (splits.node, splits.kind, splits.attribute, splits.cell, splits.first)
        moved = self._moved(*map(np.array, arrays))
        source = self._with_nodes()
        for start in range(0, len(self._nodes), MOST_ROUTED):
            now = self._nodes[start : start + MOST_ROUTED]
            # stored at once: a node is named several times in each step, so Spark's plan of several
            # steps would double again and again
            frame = self._steps.frame(self._step(source, list(map(moved, now))), step="route")
            source = self._view = self._views.stored(frame, "route", self._view)
        self._routed = True

    def _spares(self, splits: Splits) -> Spared | None:
        """The children that need no count; None without the counts of the level just before."""
        oldest, newest = self._last_counts[1], self._last_counts[1] + len(self._last_counts[0][0])
        known = all(oldest <= node < newest for node in splits.node)
        return spared(splits, self._domain.cells) if known else None

    def _walked(self, source: Sql, trees: Sequence[Tree]) -> tuple[Sql, list[Sql]]:
        """Rows with the leaf of each tree, and the leaves' columns."""
        columns = [self._ident(f"leaf{number}") for number in range(len(trees))]
        leaves = [f"{self._leaves.node(t)} AS {c}" for t, c in zip(trees, columns, strict=True)]
        return Sql(f"(SELECT {', '.join(['*', *leaves])} FROM {source})"), columns

    def _moved(
        self, nodes: Integers, kind: Integers, attribute: Integers, cell: Integers, first: Integers
    ) -> Callable[[Sql], SimpleNamespace]:
        """How a column of nodes moves by the splits of some nodes; cells have their one number."""
        low = int(nodes.min())
        size = int(nodes.max()) - low + 1

        def at(values: Integers, column: Sql) -> Sql:
            dense = np.zeros(size, dtype=np.int64)
            dense[nodes - low] = values
            return self._get(dense.tolist(), Sql(f"{column} - {low}"))

        offset = self._offsets[attribute]
        child = np.where(kind == MULTIWAY, first - offset, first)

        def move(column: Sql) -> SimpleNamespace:
            return SimpleNamespace(
                column=column,
                kind=at(kind, column),
                child=at(child, column),
                cell=Sql(f"get(`cells`, {at(attribute, column)})"),
                cut=at(cell + offset, column),
            )

        return move

    def _step(self, source: Sql, moves: Sequence[SimpleNamespace]) -> Sql:
        return render(
            "spark/route",
            source=source,
            nodes=moves,
            multiway=MULTIWAY,
            threshold=THRESHOLD,
            equals=EQUALS,
        )

    def _numbers(self, rows: Rows, columns: int) -> list[Integers]:
        """The columns of fetched rows."""
        return list(np.array(rows, dtype=np.int64).reshape(-1, columns).T)

    def drop(self) -> None:
        self._views.drop(self._view)
        self._last_counts = _NO_COUNTS
