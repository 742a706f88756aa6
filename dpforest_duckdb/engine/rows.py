"""The coded rows of a run inside DuckDB: the GROUP BYs."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import (
    POINTS,
    Coding,
    Gradients,
    Splits,
    in_dimensions,
    scores_of,
    symmetric,
)
from dpforest_duckdb.engine.encoding import Encoding
from dpforest_duckdb.engine.exponentials import Mixture, Shares
from dpforest_duckdb.engine.layout import Layout
from dpforest_duckdb.engine.leaves import at_leaf, constants, entry, in_grid, leaf_number, lookups
from dpforest_duckdb.engine.packed_votes import PackedVotes
from dpforest_duckdb.engine.packing import MAX_COUNTED, Block
from dpforest_duckdb.engine.routing import Moves, moved
from dpforest_duckdb.engine.same_nodes import SameNodes
from dpforest_duckdb.engine.siblings import Spared, spared
from dpforest_duckdb.engine.statements import Statements
from dpforest_duckdb.engine.temp_space import groups_at_once
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.scoring.codes import unsigned
from dpforest_duckdb.sql import Sql, comment, render
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree

MAX_JOINS = 32  # in one statement: planning takes time for each join, and DuckDB nests at most 1000
_NO_COUNTS: tuple[list[Integers], int] = ([np.zeros((0, 0, 0), np.int64)], 0)
MAX_TESTS = 7  # first splits of a tree that each statement tests again; with more, rows are moved
MAX_UNSTORED = 3  # trees whose votes every statement looks up again; with more, scores are stored
MAX_SUMS = 1000  # of products, in one statement
FEW_ROWS = 2**14  # up to about so many are counted by one GROUP BY for all attributes


class DuckDBRows:
    """The coded rows of one run, in a TEMP table: packed codes, and a node_class for each tree.

    The node_class of a row is its node times the number of classes, plus its class. DuckDB knows
    the range of this single narrow key, so it groups by an array index; two keys would be hashed.
    The counts of a depth stay in memory until the next depth is counted, where one child of each
    split follows by subtraction.
    """

    def __init__(
        self,
        statements: Statements,
        cursor: duckdb.DuckDBPyConnection,
        domain: Domain,
        copies: int,
    ) -> None:
        self._statements = statements
        self._cursor = cursor
        self._run = functools.partial(statements.run, on=cursor)
        self._ident = statements.dialect.ident
        self._domain = domain
        self._classes = len(domain.classes)
        self._layout = Layout(domain.cells, self._classes, self._ident)
        self._node_classes = [self._ident(f"node_class{copy}") for copy in range(copies)]
        self._name = f"dpforest_{secrets.token_hex(6)}"
        self._node_class_type = unsigned(copies * self._classes)
        self._few = False
        self._version = 0
        self._scored = False
        self._unstored: list[Tree] = []  # whose votes are not in the stored scores
        self._leaves: dict[Sql, Sql] = {}  # columns of stored leaves, by the SQL of the leaf
        self._restarted = False
        self._last_counts = _NO_COUNTS
        self._counts_at_roots: dict[tuple[int, int], list[Integers]] = {}  # by first node and nodes
        self._spared: Spared | None = None
        self._roots = 1  # the trees that share a node_class column
        self._first_splits: Tree | None = None  # that every statement tests, as no row was moved
        # for each node_class column, the nodes that may hold rows
        self._open = [{copy} for copy in range(copies)]
        self._same_nodes = SameNodes(domain.cells, copies if copies > 1 else 0)
        self._coded = self._ident("temp", "main", f"{self._name}_0")
        self._owned = True

    def with_same_codes(
        self, copies: int, *, likely_rows: int = 0, owned: bool = False
    ) -> DuckDBRows:
        """The same rows at their roots, counted by the statement for `likely_rows` (0: unknown).

        If the coded table is `owned`, it is dropped with them; then the rows here must not be used
        any more.
        """
        other = DuckDBRows(self._statements, self._cursor, self._domain, copies)
        other._coded, other._owned = self._coded, owned
        other._name = self._name if owned else other._name
        other._counts_at_roots, other._few = self._counts_at_roots, 0 < likely_rows <= FEW_ROWS
        if copies == 1:  # else the node_classes are computed again
            other._node_class_type = self._node_class_type
            other._roots, other._open = self._roots, [set(range(self._roots))]
        return other

    def _at_roots(self, copies: int) -> DuckDBRows:
        """The same rows as they are now, at the roots of `copies` trees whatever their nodes."""
        other = self.with_same_codes(copies)
        other._coded, other._restarted, other._counts_at_roots = self._codes, True, {}
        other._roots, other._open = 1, [{copy} for copy in range(copies)]
        return other

    @functools.cached_property
    def _groups_at_once(self) -> int:
        """How many GROUP BYs of one statement fit into memory."""
        cursor = self._cursor
        found: int = self._statements.call(lambda: groups_at_once(cursor), on=cursor)
        return found

    @property
    def _codes(self) -> Sql:
        return self._named(self._version)

    def _named(self, version: int) -> Sql:
        if not version:
            return self._coded
        return self._ident("temp", "main", f"{self._name}_{version}")

    def encode(self, table: TableInfo, coding: Coding) -> None:
        self._node_class_type = unsigned(coding.trees * self._classes)
        if coding.parts > 1:
            self._roots, self._open = coding.parts, [set(range(coding.parts))]
        encoding = Encoding(
            coding=coding,
            statements=self._statements,
            layout=self._layout,
            name=self._name,
            node_class=self._node_classes[0],
            node_class_type=self._node_class_type,
        )
        # the salt is a parameter, so that it is not in the statements that are shown
        # (looking for $salt in the SQL is no test for its use: a column's name may contain it)
        by_unit = coding.unit.column != "row"
        needs_salt = by_unit or coding.parts > 1 or coding.sample == "bootstrap"
        values = {"salt": coding.salt} if needs_salt else None
        self._run(encoding.sql(self._codes, table), values, step="encode")

    @property
    def _with_node_classes(self) -> Sql:
        return self._with(self._node_classes)

    def _with(self, columns: Collection[Sql]) -> Sql:
        """The coded rows with some node_class columns.

        Until rows are moved, only the first column is stored, because every tree starts with the
        same rows. Each statement then computes the others, and tests the first splits.
        """
        first = self._first_splits
        stored = len(self._node_classes) == 1 and not self._restarted and first is None
        if self._version or stored:
            return self._codes
        label = self._node_classes[0]
        if self._restarted:
            label = Sql(f"{label} % {self._classes}")
        label = Sql(f"CAST({label} AS BIGINT)")  # its type may be too narrow for the sum
        classes, node_classes = self._classes, ""
        for copy, node_class in enumerate(self._node_classes):
            if node_class not in columns:
                continue
            root = Sql(copy * classes)
            if first is not None:
                root = at_leaf(self._layout, first, range(0, first.nodes * classes, classes), copy)
            node_classes += f", CAST({root} + {label} AS {self._node_class_type}) AS {node_class}"
        return Sql(f"(SELECT {', '.join(self._layout.words)}{node_classes} FROM {self._codes})")

    @property
    def _routed(self) -> bool:
        """Whether the trees may have rows in different nodes."""
        return self._version > 0 or self._first_splits is not None

    @property
    def _counted(self) -> list[Sql]:
        """The node_class columns to count: only the first until there is a split, because every
        tree then has all rows at its root.
        """
        return self._node_classes if self._routed else self._node_classes[:1]

    def _counted_codes(self, node_class: Sql) -> Sql:
        """The coded rows with one node_class column; a statement has a SELECT for each column."""
        return self._with([node_class]) if self._routed else self._codes

    def _of_all_copies(self, counts: Integers) -> Integers:
        """The counts of every tree's nodes; without a split, those of the first root repeated."""
        return counts if self._routed else np.repeat(counts, len(self._node_classes), axis=0)

    def count_classes(self, first: int, nodes: int) -> list[Integers]:
        if self._routed:
            counts = self._count_nodes(first, nodes)
        else:
            nodes //= len(self._node_classes)
            if (first, nodes) not in self._counts_at_roots:
                self._counts_at_roots[first, nodes] = self._count_nodes(first, nodes)
            counts = list(map(self._of_all_copies, self._counts_at_roots[first, nodes]))
        if self._spared:
            self._spared.fill(counts, first, *self._last_counts)
        self._last_counts, self._spared = (counts, first), None
        return counts

    def _count_nodes(self, first: int, nodes: int) -> list[Integers]:
        """The counts of nodes, without those of spared children."""
        counted = np.arange(first, first + nodes)
        if self._spared:
            counted = np.array(self._spared.counted(first, nodes), dtype=np.int64)
        same = self._same_nodes.pairs(counted.tolist() if self._routed else [])
        wanted = (
            np.setdiff1d(counted, same[:, 0]).tolist() if len(counted) - len(same) < nodes else []
        )
        columns = [
            column
            for column, held in zip(self._counted, self._open, strict=False)
            if not wanted or not held.isdisjoint(wanted)
        ]
        counts = [np.zeros((nodes, size, self._classes), np.int64) for size in self._domain.cells]
        for start in range(0, len(columns), MAX_COUNTED):
            node_classes = columns[start : start + MAX_COUNTED]
            for whole, part in zip(
                counts, self._grids(first, nodes, node_classes, wanted), strict=True
            ):
                whole += part
        for whole in counts:
            whole[same[:, 0] - first] = whole[same[:, 1] - first]
        return counts

    def _grids(
        self,
        first: int,
        nodes: int,
        node_classes: Sequence[Sql],
        wanted: Sequence[int],
        *,
        step: str = "count_classes",
        pairs: Sql | None = None,
    ) -> list[Integers]:
        """The counts by some node_class columns; of the `wanted` nodes only, if any are named.

        `pairs` are rows with another column in place of node_class.
        """
        parts = [
            part for block in self._layout.blocks for part in block.parts(nodes, self._classes)
        ]
        at_once = max(1, self._groups_at_once // len(node_classes))
        counts: list[Integers] = []
        for start in range(0, len(parts), at_once):
            some = parts[start : start + at_once]
            found = self._counted_groups(some, first, node_classes, wanted, step, pairs)
            for index, block in enumerate(some):
                mine = found["block"] == index
                code, node_class = (
                    np.asarray(found[of][mine], dtype=np.int64) for of in ("value", "node_class")
                )
                node_class -= first * self._classes
                tables = block.marginals(
                    code, node_class, found["rows"][mine], nodes * self._classes
                )
                counts += [t.reshape(nodes, self._classes, -1).transpose(0, 2, 1) for t in tables]
        return counts

    def _counted_groups(
        self,
        parts: Sequence[Block],
        first: int,
        node_classes: Sequence[Sql],
        wanted: Sequence[int],
        step: str,
        pairs: Sql | None,
    ) -> Any:
        """The groups of rows with the same node_class and code, for some blocks."""
        sql = render(
            "count_few" if self._few else "count_classes",
            materialized=bool(wanted or pairs) or self._first_splits is not None,
            words=self._layout.words,
            blocks=[
                SimpleNamespace(
                    index=i, code=self._layout.code(block.place), names=self._names(block)
                )
                for i, block in enumerate(parts)
            ],
            node_classes=[
                SimpleNamespace(
                    column=node_class,
                    codes=pairs or self._counted_codes(node_class),
                    rows=self._ident(f"rows{copy}"),
                )
                for copy, node_class in enumerate(node_classes)
            ],
            node_class_type=self._node_class_type,
            wanted=wanted and self._node_classes_of(wanted),
            values=max(block.size for block in parts),
            first=first * self._classes,
        )
        return self._run(sql, step=step, fetch="fetchnumpy")

    def _names(self, block: Block) -> Sql:
        """The names of the attributes whose codes a block holds, for people who read the SQL."""
        return comment(", ".join(self._domain.attributes[a].name for a in block.attributes))

    def _node_classes_of(self, nodes: Sequence[int]) -> Sql:
        labels = range(self._classes)
        return self._statements.dialect.column(
            n * self._classes + label for n in nodes for label in labels
        )

    def count_leaves(self, first: int, nodes: int) -> Integers:
        nodes = nodes if self._routed else nodes // len(self._node_classes)
        sql = render(
            "count_leaves",
            node_classes=[
                SimpleNamespace(column=node_class, codes=self._counted_codes(node_class))
                for node_class in self._counted
            ],
            first=first * self._classes,
        )
        found = self._run(sql, step="count_leaves", fetch="fetchnumpy")
        node, label = self._taken_apart(found["node_class"], first)
        return self._of_all_copies(_dense([node, label], found["rows"], (nodes, self._classes)))

    def count_scores(self, votes: Sequence[Integers], cuts: Sequence[int]) -> Integers:
        sql = render(
            "count_scores",
            codes=self._with_node_classes,
            node_classes=self._node_classes,
            classes=self._classes,
            scores=[
                SimpleNamespace(
                    column=self._ident(f"score{number}"),
                    votes=constants(values.tolist()),
                )
                for number, values in enumerate(votes)
            ],
            cuts=list(cuts),
        )
        found = self._run(sql, step="count_scores", fetch="fetchnumpy")
        shape = (len(cuts) + 1,) * len(votes) + (self._classes,)
        keys = [found[f"bin{number}"] for number in range(len(votes))]
        return _dense([*keys, found["class"]], found["rows"], shape)

    def count_pairs(self, attribute: int, bins: Sequence[int]) -> list[Integers]:
        number = entry(self._layout.code_of(attribute), bins)
        label = f"{self._node_classes[0]} % {self._classes}"
        pair, words = self._ident("pair"), ", ".join(self._layout.words)
        rows = (
            f"SELECT {words}, ({number}) * {self._classes} + {label} AS {pair} FROM {self._codes}"
        )
        return self._grids(0, max(bins) + 1, [pair], [], step="count_pairs", pairs=Sql(f"({rows})"))

    def sum_products(self, positions: Mapping[int, Integers]) -> Integers:
        places = [
            SimpleNamespace(
                column=self._ident(f"place{number}"),
                value=entry(self._layout.code_of(attribute), values),
            )
            for number, (attribute, values) in enumerate(in_dimensions(positions))
        ]

        def sums(pairs: list[list[int]]) -> list[int]:
            sql = render("sum_products", codes=self._codes, places=places, pairs=pairs)
            return list(self._run(sql, step="sum_products")[0])

        return symmetric(len(places), MAX_SUMS, sums)

    def count_labels(self, trees: Sequence[Tree]) -> tuple[Integers, Integers, Integers]:
        walk = self._at_roots(len(trees))
        try:
            return walk._count_labels(trees)
        finally:
            walk.drop()

    def _count_labels(self, trees: Sequence[Tree]) -> tuple[Integers, Integers, Integers]:
        """Walk down the trees depth by depth: as CASE, large trees take long to plan."""
        # node n of a tree is number shift + n, so that the roots are 0, 1, 2 …
        shifts = len(trees) - 1 + np.cumsum([0, *(tree.nodes - 1 for tree in trees)])
        nodes = int(shifts[-1]) + 1
        for splits in _by_depth(trees, shifts, self._domain.cells):
            self.route(splits, nodes)
        columns = [self._ident(f"label{number}") for number in range(len(trees))]
        sql = render(
            "count_labels",
            codes=self._with_node_classes,
            classes=self._classes,
            trees=[
                SimpleNamespace(
                    node_class=node_class,
                    shift=int(shift),
                    label=column,
                    labels=Sql(tree.votes.argmax(axis=1).tolist()),
                )
                for node_class, shift, column, tree in zip(
                    self._node_classes, shifts[:-1], columns, trees, strict=True
                )
            ],
        )
        found = self._run(sql, step="count_labels", fetch="fetchnumpy")
        label_columns = [np.asarray(found[f"label{number}"]) for number in range(len(trees))]
        labels = np.stack(label_columns, axis=1).astype(np.int64)
        return labels, np.asarray(found["class"], np.int64), np.asarray(found["rows"], np.int64)

    @property
    def _scores(self) -> list[Sql]:
        """The columns of scores: one for each class, or for the second of two."""
        scored = range(self._classes) if self._classes > 2 else [1]
        return [self._ident(f"score{label}") for label in scored]

    def add_votes(self, trees: Sequence[Tree]) -> None:
        self._unstored += trees  # until the scores are read

    def _store_votes(self, trees: Mapping[Sql, Tree]) -> None:
        """Store the scores with all votes, and the leaves of the `trees` that are summed next.

        So leaves need not be found again when the votes of these trees are added: DuckDB takes long
        to plan a statement with large trees.
        """
        leaves = {leaf: self._ident(f"next{number}") for number, leaf in enumerate(trees)}
        sql = render(
            "add_votes",
            voted=self._named(self._version + 1),
            codes=self._codes,
            columns=[*self._layout.words, *self._node_classes],
            scores=self._scores,
            scored=self._scored,
            trees=[self._votes(tree, f"leaf{n}") for n, tree in enumerate(self._unstored)],
            leaves=leaves,
            cells={
                self._layout.separate[attribute]: self._layout.code_of(attribute)
                for tree in [*self._unstored, *trees.values()]
                for attribute in np.unique(tree.attribute[tree.kind != LEAF]).tolist()
                if not in_grid(self._layout, tree)
            },
        )
        self._run(sql, step="add_votes")
        self._scored, self._unstored, self._leaves = True, [], leaves
        self._next_version()

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
            return self._codes
        voting = [self._votes(tree, f"unstored{n}") for n, tree in enumerate(self._unstored)]
        leaves = ", ".join(f"{tree.value} AS {tree.column}" for tree in voting)
        scores = ", ".join(
            f"{score} + {' + '.join(tree.votes[number] for tree in voting)} AS {score}"
            for number, score in enumerate(self._scores)
        )
        columns = ", ".join([*self._layout.words, *self._node_classes])
        return Sql(f"(SELECT {columns}, {scores} FROM (SELECT *, {leaves} FROM {self._codes}))")

    def _votes(self, tree: Tree, leaf: str) -> SimpleNamespace:
        """What the template needs to add a tree's votes: a column, and from it each score's votes.

        With one score the column has the votes, unless the tree's leaf is stored; else it has the
        number of the leaf.
        """
        column, votes = self._ident(leaf), [values.tolist() for values in scores_of(tree.votes)]
        node = leaf_number(self._layout, tree)
        if len(votes) == 1 and node not in self._leaves:
            value = at_leaf(self._layout, tree, votes[0], separate=True)
            return SimpleNamespace(column=column, value=value, votes=[column])
        entries = [Sql(f"{constants(values)}[{column} + 1]") for values in votes]
        return SimpleNamespace(column=column, value=self._leaves.get(node, node), votes=entries)

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        shares = Shares.of(self._scores, scale.whole, self._ident)
        nodes = [leaf_number(self._layout, tree) for tree in trees]
        codes = self._with_votes(dict(zip(nodes, trees, strict=True)))
        sql = render(
            "sum_gradients",
            codes=codes,
            node_class=self._node_classes[0],
            classes=self._classes,
            layers=shares.layers,
            shares=shares.by_class,
            whole=scale.whole,
            steep=scale.steep,
            flat=scale.flat,
            trees=[
                SimpleNamespace(
                    node=self._leaves.get(node, node), leaf=self._ident(f"leaf{number}")
                )
                for number, node in enumerate(nodes)
            ],
        )
        found = self._run(sql, step="sum_gradients", fetch="fetchnumpy")
        parts = [found[f"{part}{label}"] for label in shares.by_class for part in "gh"]
        sums = []
        for number, tree in enumerate(trees):
            mine = found["tree"] == number
            dense = np.zeros((tree.nodes, len(parts)), dtype=np.int64)
            dense[np.asarray(found["node"][mine])] = np.stack(
                [part[mine] for part in parts], axis=1
            )
            sums.append(dense)
        return sums

    def rate_mixtures(
        self, models: Sequence[Sequence[Tree]], mixtures: Sequence[Sequence[int]], one_in: int
    ) -> Integers:
        looked_up = lookups(self._layout, models)
        packed = PackedVotes.of([votes for _, votes in looked_up])
        leaves = [self._ident(f"leaf{number}") for number in range(len(looked_up))]
        sums = [self._ident(f"packed{number}") for number in range(len(packed.words))]
        scores = iter(packed.scores(sums))
        weights = [self._ident(f"weight{number}") for number in range(len(models))]
        sql = render(
            "rate_mixtures",
            codes=self._codes,
            words=self._layout.words,
            one_in=one_in,
            node_class=self._node_classes[0],
            classes=self._classes,
            votes=constants(packed.votes),
            nodes={leaf: node for leaf, (node, _) in zip(leaves, looked_up, strict=True)},
            packed={
                column: [
                    SimpleNamespace(leaf=leaves[tree], before=first + 1) for tree, first in word
                ]
                for column, word in zip(sums, packed.words, strict=True)
            },
            models=[
                [*([0] if self._classes == 2 else []), *(next(scores) for _ in self._scores)]
                for _ in models
            ],
            mixture=Mixture.of(0, weights, self._classes, self._ident),
            mixtures=mixtures,
            weights=weights,
            whole=POINTS,
        )
        found = self._run(sql, step="rate_mixtures", fetch="fetchnumpy")
        return _dense([found["mixture"]], found["points"], (len(mixtures),))

    def _next_version(self) -> None:
        self._version += 1
        self._first_splits = None
        self._drop(self._version - 1)

    def _taken_apart(self, node_class: Any, first: int) -> tuple[Integers, Integers]:
        """The nodes, counted from `first`, and the classes of node_class numbers."""
        node, label = np.divmod(np.asarray(node_class, dtype=np.int64), self._classes)
        return node - first, label

    def route(self, splits: Splits, nodes: int) -> None:
        first = self._with_first(splits, nodes)
        if first is None:
            moves = self._moves(splits)
            joined = any(move.figures for move in moves)
            step = MAX_JOINS if joined else len(moves)
            for start in range(0, len(moves), step):
                self._route(moves[start : start + step], nodes)
        self._first_splits = first
        self._follow(splits)
        self._node_class_type = unsigned(nodes * self._classes)
        # subtraction needs the counts of the level just before
        oldest, newest = self._last_counts[1], self._last_counts[1] + len(self._last_counts[0][0])
        known = all(oldest <= node < newest for node in splits.node)
        self._spared = spared(splits, self._domain.cells) if known else None

    def _with_first(self, splits: Splits, nodes: int) -> Tree | None:
        """The splits of all trees so far and these ones, as one array of nodes.

        None if every statement would have to test too many splits, if rows were moved already, or
        if several trees share a node_class column.
        """
        before = self._first_splits
        made = len(splits.node) + (0 if before is None else int((before.kind != LEAF).sum()))
        alone = len(self._node_classes) == 1 and self._roots > 1
        if self._version or alone or made > MAX_TESTS * len(self._node_classes):
            return None

        def column(name: str, empty: int) -> Integers:
            values = np.full(nodes, empty, dtype=np.int64)
            if before is not None:
                values[: before.nodes] = getattr(before, name)
            values[list(splits.node)] = getattr(splits, name)
            return values

        return Tree(
            kind=column("kind", LEAF),
            attribute=column("attribute", -1),
            cell=column("cell", 0),
            first=column("first", -1),
            counts=None,
            votes=np.zeros((nodes, self._classes), np.int64),
        )

    def _moves(self, splits: Splits) -> list[SimpleNamespace]:
        """How the rows move in each node_class column in which a node is split."""
        words = [Sql(f"c.{word}") for word in self._layout.words]
        found = []
        for copy, node_class in enumerate(self._node_classes):
            mine = [i for i, node in enumerate(splits.node) if node in self._open[copy]]
            if not mine:
                continue
            others = self._open[copy].difference(splits.node[i] for i in mine)
            move = moved(
                Moves.of(splits, mine, self._layout.places, self._classes),
                node_class,
                np.array(sorted(others), dtype=np.int64),
                table=self._ident(f"splits{copy}"),
                words=words,
                classes=self._classes,
            )
            found.append(move)
        return found

    def _follow(self, splits: Splits) -> None:
        """Note which nodes may hold rows after the splits."""
        for i, node in enumerate(splits.node):
            multiway = splits.kind[i] == MULTIWAY
            arity = self._domain.cells[splits.attribute[i]] if multiway else 2
            for nodes in self._open:
                if node in nodes:
                    nodes.remove(node)
                    nodes.update(range(splits.first[i], splits.first[i] + arity))
        if len(self._node_classes) > 1:
            self._same_nodes.follow(splits)

    def _route(self, moves: Sequence[SimpleNamespace], nodes: int) -> None:
        """Move the rows in some of the node_classes; the other node_classes stay the same."""
        routed = {move.column for move in moves}
        sql = render(
            "route",
            codes=self._with_node_classes,
            routed=self._named(self._version + 1),
            columns=[*self._layout.words, *(n for n in self._node_classes if n not in routed)],
            moves=moves,
            type=unsigned(nodes * self._classes),
        )
        self._run(sql, step="route")
        self._next_version()

    def drop(self) -> None:
        # also the versions before and after: Ctrl-C may have stopped a run between two statements
        for version in range(max(0, self._version - 1), self._version + 2):
            self._drop(version)
        self._last_counts = _NO_COUNTS

    def _drop(self, version: int) -> None:
        if version or self._owned:
            self._run(f"DROP TABLE IF EXISTS {self._named(version)}")


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


def _dense(keys: Sequence[Any], rows: Any, shape: tuple[int, ...]) -> Integers:
    """The full public grid with empty cells filled in: groups that GROUP BY leaves out need noise
    too.
    """
    counts = np.zeros(shape, dtype=np.int64)
    counts[tuple(np.asarray(key, dtype=np.int64) for key in keys)] = rows
    return counts
