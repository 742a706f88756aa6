"""The GROUP BYs that count coded rows in DuckDB by node, value and class."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.engine.coded_rows.leaves import entry
from dpforest_duckdb.engine.coded_rows.same_nodes import SameNodes
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.connection.temp_space import GROUPS
from dpforest_duckdb.engine.shared.grids import dense
from dpforest_duckdb.engine.shared.packing import MAX_COUNTED, Block
from dpforest_duckdb.engine.shared.siblings import Siblings
from dpforest_duckdb.sql import Sql, comment, render

FEW_ROWS = 2**14  # up to about so many are counted by one GROUP BY for all attributes


@dataclass(frozen=True)
class Counted:
    """What a statement counts: the `wanted` nodes in some node_class columns, or, if none are
    named, those from the `lowest` one.
    """

    columns: Sequence[Sql]
    wanted: Sequence[int]
    lowest: int


@dataclass(frozen=True)
class NodeClass:
    """A node_class column, the coded rows that have it, and a name for those that are counted."""

    column: Sql
    codes: Sql
    rows: Sql | None = None


@dataclass(frozen=True)
class CountedBlock:
    """The number, the code and the attributes of a block."""

    index: int
    code: Sql
    names: Sql


class ClassCounts:
    """Counts stored rows, each group of equal nodes once.

    The counts of a depth stay in memory until the next depth is counted, where one child of each
    split follows by subtraction.
    """

    def __init__(self, stored: StoredRows) -> None:
        self._stored = stored
        self._few = False
        self._at_roots: dict[tuple[int, int], list[Integers]] = {}  # by first node and nodes
        copies = len(stored.node_classes)
        self._siblings = Siblings(stored.domain.cells)
        self._same_nodes = SameNodes(stored.domain.cells, copies if copies > 1 else 0)

    def of_same_codes(self, stored: StoredRows, likely_rows: int) -> ClassCounts:
        """Those of the same rows at their roots, by the statement for `likely_rows`."""
        other = ClassCounts(stored)
        other._at_roots, other._few = self._at_roots, 0 < likely_rows <= FEW_ROWS
        return other

    def follow(self, splits: Splits) -> None:
        """Note the splits by which the rows were routed."""
        if len(self._stored.node_classes) > 1:
            self._same_nodes.follow(splits)
        self._siblings.follow(splits)

    def forget(self) -> None:
        self._siblings.forget()

    def by_value(self, first: int, nodes: int) -> list[Integers]:
        """See `CodedRows.count_classes`."""
        if self._stored.routed:
            counts = self._of_nodes(first, nodes)
        else:
            copies = self._stored.copies
            nodes = copies.nodes(nodes)
            if (first, nodes) not in self._at_roots:
                self._at_roots[first, nodes] = self._of_nodes(first, nodes)
            counts = list(map(copies.of_all, self._at_roots[first, nodes]))
        self._siblings.fill(counts, first)
        return counts

    def by_node(self, first: int, nodes: int) -> Integers:
        """See `CodedRows.count_leaves`."""
        stored = self._stored
        sql = render(
            "count_leaves",
            node_classes=[
                NodeClass(node_class, stored.counted_codes(node_class))
                for node_class in stored.counted
            ],
            first=first * stored.classes,
        )
        found = stored.arrays(sql, step="count_leaves")
        node, label = np.divmod(np.asarray(found["node_class"], np.int64), stored.classes)
        shape = (stored.copies.nodes(nodes), stored.classes)
        return stored.copies.of_all(dense([node - first, label], found["rows"], shape))

    def by_pair(self, attribute: int, bins: Sequence[int]) -> list[Integers]:
        """See `CodedRows.count_pairs`."""
        stored = self._stored
        number = entry(stored.layout.code_of(attribute), bins)
        label = f"{stored.node_classes[0]} % {stored.classes}"
        node_class = Sql(f"({number}) * {stored.classes} + {label}")

        def groups(parts: Sequence[Block]) -> Mapping[str, Integers]:
            return self._found(
                "count_pairs", parts, codes=stored.codes, node_class=node_class, few=self._few
            )

        return self._grids(0, max(bins) + 1, groups)

    def _of_nodes(self, first: int, nodes: int) -> list[Integers]:
        """The counts of nodes, without those of children that follow by subtraction."""
        stored = self._stored
        counted = self._siblings.counted(first, nodes)
        same = self._same_nodes.pairs(counted.tolist() if stored.routed else [])
        some = len(counted) - len(same) < nodes
        wanted = np.setdiff1d(counted, same[:, 0]).tolist() if some else []
        columns = [
            column
            for column, held in zip(stored.counted, stored.open, strict=False)
            if not wanted or not held.isdisjoint(wanted)
        ]
        lowest = wanted[0] if wanted else first
        if len(wanted) == first + nodes - lowest:  # the last ones, which need no list
            wanted = []
        counts = [np.zeros((nodes, size, stored.classes), np.int64) for size in stored.domain.cells]
        for start in range(0, len(columns), MAX_COUNTED):
            node_classes = columns[start : start + MAX_COUNTED]
            groups = functools.partial(self._groups, Counted(node_classes, wanted, lowest))
            found = self._grids(first, nodes, groups, len(node_classes))
            for whole, part in zip(counts, found, strict=True):
                whole += part
        for whole in counts:
            whole[same[:, 0] - first] = whole[same[:, 1] - first]
        return counts

    @functools.cached_property
    def _groups_at_once(self) -> int:
        """How many GROUP BYs of one statement fit into memory."""
        return self._stored.at_once(GROUPS)

    def _grids(
        self,
        first: int,
        nodes: int,
        groups: Callable[[Sequence[Block]], Mapping[str, Integers]],
        columns: int = 1,
    ) -> list[Integers]:
        """The counts of nodes, or of the bins of pairs; `groups` finds those of some blocks.

        `columns` is the number of node_class columns that it reads.
        """
        classes = self._stored.classes
        parts = [
            part for block in self._stored.layout.blocks for part in block.parts(nodes, classes)
        ]
        # one GROUP BY for all attributes takes no memory for each of them
        at_once = len(parts) if self._few else max(1, self._groups_at_once // columns)
        counts: list[Integers] = []
        for start in range(0, len(parts), at_once):
            some = parts[start : start + at_once]
            found = groups(some)
            order = np.argsort(found["block"], kind="stable")
            ends = np.searchsorted(found["block"][order], range(len(some) + 1))
            code, node_class, rows = (
                np.asarray(found[of], dtype=np.int64)[order]
                for of in ("value", "node_class", "rows")
            )
            node_class -= first * classes
            for block, mine in zip(some, starmap(slice, pairwise(ends)), strict=True):
                counts += block.marginals(code[mine], node_class[mine], rows[mine], nodes, classes)
        return counts

    def _groups(self, counted: Counted, parts: Sequence[Block]) -> Mapping[str, Integers]:
        """The groups of rows with the same node_class and code, for some blocks."""
        stored, lowest = self._stored, counted.lowest
        above = not all(lowest <= node for nodes in stored.open for node in nodes)
        return self._found(
            "count_few" if self._few else "count_classes",
            parts,
            materialized=bool(counted.wanted) or stored.tests_splits,
            node_classes=[
                NodeClass(node_class, stored.counted_codes(node_class), stored.ident(f"rows{copy}"))
                for copy, node_class in enumerate(counted.columns)
            ],
            node_class_type=stored.node_class_type,
            wanted=counted.wanted and self._node_classes_of(counted.wanted),
            first=lowest * stored.classes if above else 0,
        )

    def _found(self, step: str, parts: Sequence[Block], **values: Any) -> dict[str, Integers]:
        """The groups that a template counts, for some blocks."""
        layout, most = self._stored.layout, max(block.size for block in parts)
        code = layout.bits_at if self._few else layout.code
        sql = render(
            step,
            words=layout.words,
            blocks=[
                CountedBlock(i, code(block.place), self._names(block))
                for i, block in enumerate(parts)
            ],
            values=most,
            **values,
        )
        found: dict[str, Integers] = self._stored.arrays(sql, step=step)
        if self._few:
            node_block, found["value"] = np.divmod(found["key"], most)
            found["node_class"], found["block"] = np.divmod(node_block, len(parts))
        return found

    def _names(self, block: Block) -> Sql:
        """The names of the attributes whose codes a block holds, for people who read the SQL."""
        attributes = self._stored.domain.attributes
        return comment(", ".join(attributes[number].name for number in block.attributes))

    def _node_classes_of(self, nodes: Sequence[int]) -> Sql:
        labels = range(self._stored.classes)
        return self._stored.statements.dialect.column(
            node * self._stored.classes + label for node in nodes for label in labels
        )
