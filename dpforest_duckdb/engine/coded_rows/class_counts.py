"""The GROUP BYs that count coded rows in DuckDB by node, value and class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.leaves import entry
from dpforest_duckdb.engine.coded_rows.same_nodes import SameNodes
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.shared.grids import dense
from dpforest_duckdb.engine.shared.packing import MAX_COUNTED, Block, Place
from dpforest_duckdb.engine.shared.siblings import Siblings
from dpforest_duckdb.scoring.codes import unsigned
from dpforest_duckdb.sql import Column, Sql, comment, render

FEW_ROWS = 2**14  # up to about so many are counted by one GROUP BY for all attributes
RootCounts = dict[tuple[int, int], list[Integers]]  # by first node and number of nodes


@dataclass(frozen=True)
class NodeClass:
    """A node_class column, the coded rows that have it, and a name for those that are counted."""

    column: Sql
    codes: Sql
    rows: Sql | None = None


@dataclass(frozen=True)
class Counted:
    """What a statement counts: the `wanted` nodes in some node_class columns, or, if none are
    named, those from the `first` one. If it is `materialized`, it finds their rows once.
    """

    node_classes: Sequence[NodeClass]
    materialized: bool
    wanted: Sequence[int] = ()
    first: int = 0


@dataclass(frozen=True)
class CountedBlock:
    """The number, the code and the attributes of a block."""

    index: int
    code: Sql
    names: Sql


class OneByOne:
    """Each block has a GROUP BY of its own."""

    template = "count_classes"

    def at_once(self, stored: StoredRows, blocks: int, columns: int) -> int:
        """How many of the blocks one statement counts, for so many node_class columns."""
        return max(1, stored.groups_at_once // columns)

    @contextmanager
    def with_bins(self, stored: StoredRows, bins: Column) -> Iterator[NodeClass]:
        """The rows with a computed node_class, in a copy, because each GROUP BY reads it."""
        with stored.copy("pairs", words=stored.layout.words, node_class=bins) as copy:
            yield NodeClass(bins.name, copy)

    def code(self, layout: Layout, place: Place) -> Sql:
        return layout.code(place)

    def groups(
        self, found: Mapping[str, Integers], blocks: int, values: int
    ) -> Mapping[str, Integers]:
        """The block, node_class, value and rows of each group that a statement found."""
        return found


class Together:
    """All blocks have one GROUP BY, which takes no memory for each of them."""

    template = "count_few"

    def at_once(self, stored: StoredRows, blocks: int, columns: int) -> int:
        return blocks

    @contextmanager
    def with_bins(self, stored: StoredRows, bins: Column) -> Iterator[NodeClass]:
        yield NodeClass(bins.value, stored.codes)  # the only GROUP BY reads it once

    def code(self, layout: Layout, place: Place) -> Sql:
        return layout.bits_at(place)

    def groups(
        self, found: Mapping[str, Integers], blocks: int, values: int
    ) -> Mapping[str, Integers]:
        node_block, value = np.divmod(found["key"], values)
        node_class, block = np.divmod(node_block, blocks)
        return {"block": block, "node_class": node_class, "value": value, "rows": found["rows"]}


Counting = OneByOne | Together


def counting(likely_rows: int) -> Counting:
    """How that many rows are counted fastest; 0 is an unknown number."""
    return Together() if 0 < likely_rows <= FEW_ROWS else OneByOne()


class ClassCounts:
    """Counts stored rows, each group of equal nodes once.

    The counts of a depth stay in memory until the next depth is counted, where one child of each
    split follows by subtraction. `at_roots` are the counts of the same rows at their roots.
    """

    def __init__(self, stored: StoredRows, counting: Counting, at_roots: RootCounts) -> None:
        self._stored = stored
        self._counting = counting
        self.at_roots = at_roots
        copies = len(stored.node_classes)
        self._siblings = Siblings(stored.domain.cells)
        self._same_nodes = SameNodes(stored.domain.cells, copies if copies > 1 else 0)

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
            if (first, nodes) not in self.at_roots:
                self.at_roots[first, nodes] = self._of_nodes(first, nodes)
            counts = list(map(copies.of_all, self.at_roots[first, nodes]))
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
        narrow = unsigned((max(bins) + 1) * stored.classes)
        node_class = Sql(f"CAST(({number}) * {stored.classes} + {label} AS {narrow})")
        with self._counting.with_bins(stored, Column(node_class, stored.ident("bin"))) as of_bins:
            return self._grids(0, max(bins) + 1, Counted([of_bins], materialized=False))

    def _of_nodes(self, first: int, nodes: int) -> list[Integers]:
        """The counts of nodes, without those of children that follow by subtraction."""
        stored = self._stored
        counted = self._siblings.counted(first, nodes)
        same = self._same_nodes.pairs(counted.tolist() if stored.routed else [])
        fewer = len(counted) - len(same) < nodes
        wanted = np.setdiff1d(counted, same[:, 0]).tolist() if fewer else []
        columns = [
            column
            for column, held in zip(stored.counted, stored.open, strict=False)
            if not wanted or not held.isdisjoint(wanted)
        ]
        lowest = wanted[0] if wanted else first
        if len(wanted) == first + nodes - lowest:  # the last ones, which need no list
            wanted = []
        below = any(node < lowest for nodes in stored.open for node in nodes)
        counts = [np.zeros((nodes, size, stored.classes), np.int64) for size in stored.domain.cells]
        for start in range(0, len(columns), MAX_COUNTED):
            node_classes = [
                NodeClass(column, stored.counted_codes(column), stored.ident(f"rows{copy}"))
                for copy, column in enumerate(columns[start : start + MAX_COUNTED])
            ]
            materialized = bool(wanted) or stored.tests_splits
            some = Counted(node_classes, materialized, wanted, lowest if below else 0)
            for whole, part in zip(counts, self._grids(first, nodes, some), strict=True):
                whole += part
        for whole in counts:
            whole[same[:, 0] - first] = whole[same[:, 1] - first]
        return counts

    def _grids(self, first: int, nodes: int, counted: Counted) -> list[Integers]:
        """The counts of nodes, or of the bins of pairs."""
        classes = self._stored.classes
        parts = [
            part for block in self._stored.layout.blocks for part in block.parts(nodes, classes)
        ]
        at_once = self._counting.at_once(self._stored, len(parts), len(counted.node_classes))
        counts: list[Integers] = []
        for start in range(0, len(parts), at_once):
            some = parts[start : start + at_once]
            found = self._groups(counted, some)
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
        stored, layout, most = self._stored, self._stored.layout, max(part.size for part in parts)
        sql = render(
            self._counting.template,
            words=layout.words,
            blocks=[
                CountedBlock(i, self._counting.code(layout, block.place), self._names(block))
                for i, block in enumerate(parts)
            ],
            values=most,
            materialized=counted.materialized,
            node_classes=counted.node_classes,
            node_class_type=stored.node_class_type,
            wanted=counted.wanted and self._node_classes_of(counted.wanted),
            first=counted.first * stored.classes,
        )
        found = stored.arrays(sql, step=self._counting.template)
        return self._counting.groups(found, len(parts), most)

    def _names(self, block: Block) -> Sql:
        """The names of the attributes whose codes a block holds, for people who read the SQL."""
        attributes = self._stored.domain.attributes
        return comment(", ".join(attributes[number].name for number in block.attributes))

    def _node_classes_of(self, nodes: Sequence[int]) -> Sql:
        labels = range(self._stored.classes)
        return self._stored.statements.dialect.column(
            node * self._stored.classes + label for node in nodes for label in labels
        )
