"""The coded rows of a run in a TEMP table of DuckDB: stored, and moved from node to node."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.names import random_name
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Coding, Splits
from dpforest_duckdb.engine.coded_rows.encoding import Encoding
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.leaves import at_leaf, in_grid
from dpforest_duckdb.engine.coded_rows.routing import Move, Moves, moved
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.engine.connection.temp_space import GROUPS, at_once
from dpforest_duckdb.engine.shared.copies import Copies
from dpforest_duckdb.scoring.codes import unsigned
from dpforest_duckdb.sql import Column, Sql, nested, render
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree

MAX_JOINS = 32  # in one statement: planning takes time for each join, and DuckDB nests at most 1000
MAX_TESTS = 7  # first splits of a tree that each statement tests again; with more, rows are moved


@dataclass(frozen=True)
class Origin:
    """The coded `table` that rows start from. It is dropped with the rows if it is `owned`.

    `name` is the prefix of the tables that are made of it, and `type` that of the node_class
    columns. If there is only one such column, `roots` trees share it, and its first nodes are their
    roots. If rows are `restarted`, they start at the roots, whatever their nodes in the table.
    """

    table: Sql
    name: str
    type: Sql
    roots: int = 1
    owned: bool = True
    restarted: bool = False


class StoredRows:
    """Packed codes and a node_class for each tree, in a table. Each change writes a new table.

    The node_class of a row is its node times the number of classes, plus its class. DuckDB knows
    the range of this single narrow key, so it groups by an array index; two keys would be hashed.
    """

    def __init__(
        self,
        statements: Statements,
        cursor: duckdb.DuckDBPyConnection,
        domain: Domain,
        copies: int,
        origin: Origin,
    ) -> None:
        self.statements = statements
        self.cursor = cursor
        self.run = functools.partial(statements.run, on=cursor)
        self.arrays = functools.partial(statements.arrays, on=cursor)
        self.ident = statements.dialect.ident
        self.domain = domain
        self.classes = len(domain.classes)
        self.layout = Layout(domain.cells, self.classes, self.ident)
        self.node_classes = [self.ident(f"node_class{copy}") for copy in range(copies)]
        self.node_class_type = origin.type
        # for each node_class column, the nodes that may hold rows
        self.open = [{copy} for copy in range(copies)] if copies > 1 else [set(range(origin.roots))]
        self._origin = origin
        self._version = 0
        self._newest = 0  # the last version that may be in the database
        self._first_splits: Tree | None = None  # that every statement tests, as no row was moved

    @staticmethod
    def encoded(
        statements: Statements,
        cursor: duckdb.DuckDBPyConnection,
        table: TableInfo,
        coding: Coding,
    ) -> StoredRows:
        """The rows of `table`, in a new table of codes."""
        name = random_name()
        origin = Origin(
            table=_table(statements, name, 0),
            name=name,
            type=unsigned(coding.trees * len(coding.domain.classes)),
            roots=coding.parts,
        )
        rows = StoredRows(statements, cursor, coding.domain, coding.node_columns, origin)
        encoding = Encoding(
            coding=coding,
            statements=statements,
            layout=rows.layout,
            name=name,
            node_class=rows.node_classes[0],
            node_class_type=rows.node_class_type,
        )
        # the salt is a parameter, so that it is not in the statements that are shown
        # (looking for $salt in the SQL is no test for its use: a column's name may contain it)
        by_unit = not coding.unit.is_row
        needs_salt = by_unit or coding.parts > 1 or coding.sample == "bootstrap"
        values = {"salt": coding.salt} if needs_salt else None
        rows.run(encoding.sql(rows.codes, table), values, step="encode")
        return rows

    def with_same_codes(self, copies: int, *, owned: bool = False) -> StoredRows:
        """The same rows at their roots.

        If the coded table is `owned`, it is dropped with them; then the rows here must not be used
        any more.
        """
        origin = replace(
            self._origin,
            name=self._origin.name if owned else random_name(),
            type=self._type_at_roots(copies),
            roots=self._origin.roots if copies == 1 else 1,  # that share the one column
            owned=owned,
        )
        return StoredRows(self.statements, self.cursor, self.domain, copies, origin)

    def at_roots(self, copies: int) -> StoredRows:
        """The same rows as they are now, at the roots of `copies` trees whatever their nodes."""
        origin = Origin(
            table=self.codes,
            name=random_name(),
            type=self._type_at_roots(copies),
            owned=False,
            restarted=True,
        )
        return StoredRows(self.statements, self.cursor, self.domain, copies, origin)

    def _type_at_roots(self, copies: int) -> Sql:
        """The type of the node_class columns of rows at the roots of so many trees."""
        return self.node_class_type if copies == 1 else unsigned(copies * self.classes)

    @property
    def codes(self) -> Sql:
        """The table: codes, stored node_classes, and what `replace` added."""
        return self._named(self._version)

    def _named(self, version: int) -> Sql:
        if not version:
            return self._origin.table
        return _table(self.statements, self._origin.name, version)

    @property
    def with_node_classes(self) -> Sql:
        """The coded rows with all node_class columns."""
        return self._with(self.node_classes)

    def _with(self, columns: Collection[Sql]) -> Sql:
        """The coded rows with some node_class columns.

        Until rows are moved, only the first column is stored, because every tree starts with the
        same rows. Each statement then computes the others, and tests the first splits.
        """
        first = self._first_splits
        stored = len(self.node_classes) == 1 and not self._origin.restarted and first is None
        if self._version or stored:
            return self.codes
        label = self.node_classes[0]
        if self._origin.restarted:
            label = Sql(f"{label} % {self.classes}")
        label = Sql(f"CAST({label} AS BIGINT)")  # its type may be too narrow for the sum
        node_classes = list[Column]()
        for copy, node_class in enumerate(self.node_classes):
            if node_class not in columns:
                continue
            root = Sql(copy * self.classes)
            if first is not None:
                root = self._leaf_times_classes(first, copy)
            node_classes.append(Column(Sql(f"{root} + {label}"), node_class))
        return nested(
            "with_nodes",
            words=self.layout.words,
            node_classes=node_classes,
            type=self.node_class_type,
            codes=self.codes,
        )

    def _leaf_times_classes(self, tree: Tree, root: int) -> Sql:
        """The number of a row's leaf below a root, times the number of classes."""
        leaf = in_grid(self.layout, tree, root)
        if leaf:
            return Sql(f"({leaf}) * CAST({self.classes} AS BIGINT)")
        values = range(0, tree.nodes * self.classes, self.classes)
        return at_leaf(self.layout, tree, values, root)

    def at_once(self, size: int) -> int:
        """How many parts of a statement fit into memory: see `temp_space.at_once`."""
        found: int = self.statements.call(lambda: at_once(self.cursor, size), on=self.cursor)
        return found

    @functools.cached_property
    def groups_at_once(self) -> int:
        """How many GROUP BYs of one statement fit into memory."""
        return self.at_once(GROUPS)

    @property
    def tests_splits(self) -> bool:
        """Whether every statement tests the first splits to find the nodes of rows."""
        return self._first_splits is not None

    @property
    def routed(self) -> bool:
        """Whether the trees may have rows in different nodes."""
        return self._version > 0 or self.tests_splits

    @property
    def copies(self) -> Copies:
        """Which of the trees are counted."""
        return Copies(len(self.node_classes), self.routed)

    @property
    def counted(self) -> list[Sql]:
        """The node_class columns to count."""
        return self.node_classes[: self.copies.counted]

    def counted_codes(self, node_class: Sql) -> Sql:
        """The coded rows with one node_class column; a statement has a SELECT for each column."""
        return self._with([node_class]) if self.routed else self.codes

    def route(self, splits: Splits, nodes: int) -> None:
        """See `CodedRows.route`."""
        first = self._with_first(splits, nodes)
        if first is None:
            moves = self._moves(splits)
            joined = any(move.figures for move in moves)
            step = MAX_JOINS if joined else len(moves)
            for start in range(0, len(moves), step):
                self._route(moves[start : start + step], nodes)
        self._first_splits = first
        self._follow(splits)
        self.node_class_type = unsigned(nodes * self.classes)

    def _with_first(self, splits: Splits, nodes: int) -> Tree | None:
        """The splits of all trees so far and these ones, as one array of nodes.

        None if every statement would have to test too many splits, if rows were moved already, or
        if several trees share a node_class column.
        """
        before = self._first_splits
        made = len(splits.node) + (0 if before is None else int((before.kind != LEAF).sum()))
        alone = len(self.node_classes) == 1 and self._origin.roots > 1
        if self._version or alone or made > MAX_TESTS * len(self.node_classes):
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
            votes=np.zeros((nodes, self.classes), np.int64),
        )

    def _moves(self, splits: Splits) -> list[Move]:
        """How the rows move in each node_class column in which a node is split."""
        words = [Sql(f"c.{word}") for word in self.layout.words]
        found = []
        for copy, node_class in enumerate(self.node_classes):
            mine = [i for i, node in enumerate(splits.node) if node in self.open[copy]]
            if not mine:
                continue
            others = self.open[copy].difference(splits.node[i] for i in mine)
            move = moved(
                Moves.of(splits, mine, self.layout.places, self.classes),
                node_class,
                np.array(sorted(others), dtype=np.int64),
                table=self.ident(f"splits{copy}"),
                words=words,
                classes=self.classes,
            )
            found.append(move)
        return found

    def _follow(self, splits: Splits) -> None:
        """Note which nodes may hold rows after the splits."""
        for i, node in enumerate(splits.node):
            multiway = splits.kind[i] == MULTIWAY
            arity = self.domain.cells[splits.attribute[i]] if multiway else 2
            for nodes in self.open:
                if node in nodes:
                    nodes.remove(node)
                    nodes.update(range(splits.first[i], splits.first[i] + arity))

    def _route(self, moves: Sequence[Move], nodes: int) -> None:
        """Move the rows in some of the node_classes; the other node_classes stay the same."""
        moving = {move.column for move in moves}
        self.replace(
            "route",
            codes=self.with_node_classes,
            columns=[*self.layout.words, *(n for n in self.node_classes if n not in moving)],
            moves=moves,
            type=unsigned(nodes * self.classes),
        )

    def replace(self, step: str, **values: object) -> None:
        """Run the template `step`, which makes the next table `made`, and drop the present one."""
        self._newest = self._version + 1
        self.run(render(step, made=self._named(self._newest), **values), step=step)
        self._version = self._newest
        self._first_splits = None
        self._drop(self._version - 1)

    @contextmanager
    def copy(self, step: str, **values: object) -> Iterator[Sql]:
        """A table that the template `step` makes of the rows. It is dropped after the block."""
        made = _table(self.statements, f"{self._origin.name}_copy", self._version)
        try:
            self.run(render(step, made=made, codes=self.codes, **values), step=step)
            yield made
        finally:
            self.run(f"DROP TABLE IF EXISTS {made}")

    def drop(self) -> None:
        # Ctrl-C may have stopped a run between two statements
        for version in range(max(0, self._newest - 1), self._newest + 1):
            self._drop(version)

    def _drop(self, version: int) -> None:
        if version or self._origin.owned:
            self.run(f"DROP TABLE IF EXISTS {self._named(version)}")


def _table(statements: Statements, name: str, version: int) -> Sql:
    """A TEMP table of codes."""
    return statements.dialect.ident("temp", "main", f"{name}_{version}")
