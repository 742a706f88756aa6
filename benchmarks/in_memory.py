"""Training without a database: the package's own learners on rows in memory, many times faster.

The figures of thousands of forests are wanted, each of a few thousand rows, where statements cost
more than counting. A `Table` is read from DuckDB once. `Memory` is an engine as the package defines
one, so that everything but counting is the package's own code; tests compare its forests with those
of DuckDB under the same seed. Noise comes from seeds: this is for experiments on public data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb import load_domain
from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import MIXTURE_PARTS, POINTS, Coding, Gradients, Splits
from dpforest_duckdb.engine.shared.grids import in_dimensions
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.ledger.accounts import NoAccount
from dpforest_duckdb.model.figures import LEAST_PROBABILITY, auc
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import atto_delta, nano_epsilon
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.scoring.codes import DuckDBCodes
from dpforest_duckdb.training.run import Run, grown_forest
from dpforest_duckdb.tree import LEAF, MULTIWAY, SCALE, THRESHOLD, Tree, Voting, branch_of

CODINGS = 512  # of attributes, kept for a table
FEW_SPLITS = 64  # of a tree that is read split by split
BLOCK = 16_384  # rows whose gradients are computed at a time: they fit into a processor's cache
DIALECT = DuckDBCodes()


@dataclass(frozen=True)
class Figures:
    """What a forest reaches on rows that it has not seen; AUC for two classes."""

    accuracy: float
    auc: float | None
    log_loss: float

    def rounded(self) -> dict[str, float | None]:
        """To five digits, by name, as results are kept."""
        area = None if self.auc is None else round(self.auc, 5)
        return {
            "accuracy": round(self.accuracy, 5),
            "auc": area,
            "log_loss": round(self.log_loss, 5),
        }


class Table:
    """A table's rows with a known class: `labels[row]`, and codes of its attributes on request.

    Numeric columns (numbers, dates, times, decimals) are kept as floats.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, name: str, domain: Domain) -> None:
        columns = DuckDBEngine(con).table(name).columns
        self.domain = domain.without([domain.privacy_unit or ""]).bind(columns)
        label = DIALECT.class_code(
            self.domain.classes, self.domain.target_type, DIALECT.ident(self.domain.target)
        )
        found = con.execute(
            f"SELECT * FROM (SELECT {', '.join(map(self._read, self._numbered))}, "
            f"{label} AS label FROM {DIALECT.ident(name)}) WHERE label IS NOT NULL"
        ).fetchnumpy()
        self.labels = np.asarray(found["label"], dtype=np.int64)
        self._values = {a.name: np.ma.filled(found[f"a{n}"], np.nan) for n, a in self._numbered}
        self._places: dict[str, tuple[Floats, Integers]] = {}
        self._coded = lru_cache(CODINGS)(self._code)

    @property
    def _numbered(self) -> list[tuple[int, Attribute]]:
        return list(enumerate(self.domain.attributes))

    @staticmethod
    def _read(numbered: tuple[int, Attribute]) -> str:
        """A number as it is, a category as its cell."""
        number, attribute = numbered
        column = DIALECT.ident(attribute.column)
        if attribute.kind != "numeric":
            return f"{DIALECT.code(attribute, column)} AS a{number}"
        if attribute.family == "date":
            return f"{column} - DATE '1970-01-01' AS a{number}"
        if attribute.family == "timestamp":
            return f"epoch({column}) AS a{number}"
        return f"CAST({column} AS DOUBLE) AS a{number}"

    def codes(self, domain: Domain, rows: Integers) -> Integers:
        """The cells `[attribute, row]` of a domain, which may be cut otherwise, of the `rows`."""
        return np.stack([self._coded(attribute)[rows] for attribute in domain.attributes])

    def _code(self, attribute: Attribute) -> Integers:
        values = self._values[attribute.name]
        if attribute.kind != "numeric":
            return cast(Integers, values.astype(np.int16))
        if attribute.name not in self._places:  # of each distinct value only one is looked up
            self._places[attribute.name] = np.unique(values.astype(float), return_inverse=True)
        distinct, place = self._places[attribute.name]
        cells = np.searchsorted(np.array(attribute.edges, dtype=float), distinct, side="left")
        cells[np.isnan(distinct)] = attribute.null
        return cast(Integers, cells.astype(np.int16)[place])


@dataclass(frozen=True)
class Memory:
    """A snapshot of some rows of a table, with what training a recipe of this package needs."""

    table: Table
    rows: Integers

    def encode(self, coding: Coding, **others: object) -> MemoryRows:
        """The rows, every one a unit and seen by every tree."""
        assert coding.unit.is_row, "rows are the units"
        assert coding.sample == "all", "recipes of this package show all rows to every tree"
        codes = self.table.codes(coding.domain, self.rows)
        return MemoryRows(codes, self.table.labels[self.rows], coding.domain, coding.trees)


class MemoryRows:
    """Coded rows as arrays, counted and routed as `engine.base.CodedRows` says."""

    def __init__(self, codes: Integers, labels: Integers, domain: Domain, trees: int) -> None:
        self._codes, self._labels, self._cells = codes, labels, domain.cells
        self._classes = len(domain.classes)
        self._nodes = [np.full(len(labels), tree, dtype=np.int64) for tree in range(trees)]
        self._scores = np.zeros((self._classes, len(labels)), dtype=np.int64)
        self._parts: tuple[Gradients, Floats] | None = None
        self._leaves: list[tuple[Integers, Integers]] = []  # kinds of a tree's nodes, leaf [row]

    def count_classes(self, first: int, nodes: int) -> list[Integers]:
        counts = [np.zeros(nodes * k * self._classes, dtype=np.int64) for k in self._cells]
        for node in self._nodes:
            rows = np.flatnonzero(node >= first)
            start, label = node[rows] - first, self._labels[rows]
            for table, code, cells in zip(counts, self._codes, self._cells, strict=True):
                key = (start * cells + code[rows]) * self._classes + label
                table += np.bincount(key, minlength=len(table))
        shapes = [(nodes, cells, self._classes) for cells in self._cells]
        return [table.reshape(shape) for table, shape in zip(counts, shapes, strict=True)]

    def count_pairs(self, attribute: int, bins: Sequence[int]) -> list[Integers]:
        values, classes = max(bins) + 1, self._classes
        first = np.array(bins)[self._codes[attribute]]
        counts = []
        for code, cells in zip(self._codes, self._cells, strict=True):
            key = (first * cells + code) * classes + self._labels
            counts.append(np.bincount(key, minlength=values * cells * classes))
            counts[-1] = counts[-1].reshape(values, cells, classes)
        return counts

    def sum_products(self, positions: Mapping[int, Integers]) -> Integers:
        placed = np.stack(
            [
                np.array(values)[self._codes[attribute]]
                for attribute, values in in_dimensions(positions)
            ]
        )
        sums = placed.astype(float) @ placed.T.astype(float)  # exact below 2^53
        return np.rint(sums).astype(np.int64)

    def count_leaves(self, first: int, nodes: int) -> Integers:
        counts = np.zeros(nodes * self._classes, dtype=np.int64)
        for node in self._nodes:
            rows = node >= first
            key = (node[rows] - first) * self._classes + self._labels[rows]
            counts += np.bincount(key, minlength=len(counts))
        return counts.reshape(nodes, self._classes)

    def count_scores(self, votes: Sequence[Integers], cuts: Sequence[int]) -> Integers:
        bins = [np.searchsorted(cuts, sum(score[node] for node in self._nodes)) for score in votes]
        counts = np.zeros((len(cuts) + 1,) * len(votes) + (self._classes,), dtype=np.int64)
        np.add.at(counts, (*bins, self._labels), 1)
        return counts

    def add_votes(self, trees: Sequence[Tree]) -> None:
        for tree in trees:
            known = (leaf for kind, leaf in self._leaves if kind is tree.kind)
            leaf = next(known, None)
            if leaf is None:
                leaf = find_leaves(tree, self._codes)
            for score, votes in zip(self._scores, tree.votes.T, strict=True):
                score += votes[leaf]
        self._parts, self._leaves = None, []

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        if self._parts is None or self._parts[0] != scale:
            self._parts = scale, self._gradients(scale)
        sums = []
        for tree in trees:
            leaf = find_leaves(tree, self._codes)
            self._leaves.append((tree.kind, leaf))  # a tree with votes has the same array
            columns = [np.bincount(leaf, part, tree.nodes) for part in self._parts[1]]
            sums.append(np.rint(np.stack(columns, axis=1)).astype(np.int64))
        return sums

    def _gradients(self, scale: Gradients) -> Floats:
        """A gradient and a hessian `[part, row]` of each class, or of the second of two."""
        steepness = scale.hessian_numerator / (scale.whole * scale.hessian_denominator)
        first = int(self._classes == 2)
        parts = np.empty((self._classes - first, 2, len(self._labels)))
        for start in range(0, len(self._labels), BLOCK):
            block = slice(start, start + BLOCK)
            scores, labels = self._scores[:, block], self._labels[block]
            weight = np.exp((scores - scores.max(axis=0)) / SCALE)
            share = np.floor(weight * (scale.whole / weight.sum(axis=0)))
            gradient = -share
            gradient[labels, np.arange(len(labels))] += scale.whole
            parts[:, 0, block] = gradient[first:]
            parts[:, 1, block] = np.floor(share * (scale.whole - share) * steepness)[first:]
        return parts.reshape(-1, len(self._labels))

    def rate_mixtures(
        self, models: Sequence[Sequence[Tree]], mixtures: Sequence[Sequence[int]], one_in: int
    ) -> Integers:
        codes, labels = self._codes, self._labels
        if one_in > 1:
            some = _hashed(codes) % np.uint64(one_in) == 0
            codes, labels = codes[:, some], labels[some]
        scores = np.stack(
            [sum(tree.votes[find_leaves(tree, codes)].T for tree in model) for model in models]
        )
        half, points = POINTS // 2, []
        for weights in mixtures:
            odds = np.tensordot(weights, scores, 1) / (MIXTURE_PARTS * SCALE)
            of_class, top = odds[labels, np.arange(odds.shape[1])], odds.max(axis=0)
            loss = np.log(np.exp(odds - top).sum(axis=0)) + top - of_class
            part = np.clip(loss / (4 * math.log(self._classes)), 0, 1)
            points.append(int((half * (of_class == top) + np.floor(half * (1 - part))).sum()))
        return np.array(points, dtype=np.int64)

    def route(self, splits: Splits, nodes: int) -> None:
        split_of = np.full(nodes, -1, dtype=np.int64)
        split_of[np.asarray(splits.node)] = np.arange(len(splits.node))
        attribute, kind, cell, first = (
            np.asarray(part) for part in (splits.attribute, splits.kind, splits.cell, splits.first)
        )
        for tree, node in enumerate(self._nodes):
            split, moved = split_of[node], node.copy()
            for number in np.unique(attribute):
                rows = np.flatnonzero((split >= 0) & (attribute[split] == number))
                parent, code = split[rows], self._codes[number][rows].astype(np.int64)
                moved[rows] = first[parent] + branch_of(kind[parent], cell[parent], code)
            self._nodes[tree] = moved

    def drop(self) -> None:
        """Nothing is kept anywhere else."""


def _hashed(codes: Integers) -> NDArray[np.uint64]:
    """A hash `[row]` of the codes `[attribute, row]`."""
    found = np.zeros(codes.shape[1], dtype=np.uint64)
    for code in codes:
        found = (found ^ code.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return found


def find_leaves(tree: Tree, codes: Integers) -> Integers:
    """The leaf of each row; `codes[attribute, row]`."""
    if tree.kind[0] == LEAF:
        return np.zeros(codes.shape[1], dtype=np.int64)
    if tree.kind[0] == MULTIWAY and (tree.kind[1:] == LEAF).all():
        return tree.first[0] + codes[tree.attribute[0]].astype(np.int64)
    if np.count_nonzero(tree.kind != LEAF) <= FEW_SPLITS and (tree.kind != MULTIWAY).all():
        return _few_splits(tree, codes)
    node, rows = np.zeros(codes.shape[1], dtype=np.int64), np.arange(codes.shape[1])
    while len(rows):
        at = node[rows]
        code = codes[tree.attribute[at], rows].astype(np.int64)
        node[rows] = tree.first[at] + branch_of(tree.kind[at], tree.cell[at], code)
        rows = rows[tree.kind[node[rows]] != LEAF]
    return node


def _few_splits(tree: Tree, codes: Integers) -> Integers:
    """The leaf of each row in a small tree of binary splits, from its leaves up."""
    below: dict[int, Any] = {}
    for node in reversed(range(tree.nodes)):  # children come after their node
        if tree.kind[node] == LEAF:
            below[node] = np.int16(node)
            continue
        code, cell = codes[tree.attribute[node]], codes.dtype.type(tree.cell[node])
        second = code > cell if tree.kind[node] == THRESHOLD else code != cell
        first = int(tree.first[node])
        below[node] = np.where(second, below.pop(first + 1), below.pop(first))
    return cast(Integers, below[0].astype(np.int64))


def trained(
    table: Table,
    rows: Integers,
    recipe: str | Recipe,
    epsilon: float | str,
    delta: float | str = 0,
    *,
    seed: int,
) -> Forest:
    """Train on some rows of a table with seeded noise; every row is a privacy unit."""
    chosen = find(recipe) if isinstance(recipe, str) else recipe
    request = chosen.request(table.domain, nano_epsilon(epsilon), delta=atto_delta(delta))
    with warnings.catch_warnings(action="ignore"):  # seeded noise warns at every run
        randomness = Randomness.seeded(seed)
    run = Run(
        engine=cast(Any, None),
        account=NoAccount(),
        table=TableInfo("memory", "main", "memory", {}),
        recipe=chosen,
        request=request,
        plan=chosen.whole_plan(request),
        unit=PrivacyUnit("row"),
        randomness=randomness,
        name=None,
        replace=False,
    )
    return grown_forest(run, cast(Any, Memory(table, rows)))


def evaluated(forest: Forest, table: Table, rows: Integers) -> Figures:
    """The figures of a forest on some rows of a table."""
    shares, labels = predicted(forest, table, rows), table.labels[rows]
    return figures(shares, labels)


def predicted(forest: Forest, table: Table, rows: Integers) -> Floats:
    """Class probabilities `[row, class]`; equal ones where no tree votes."""
    assert forest.voting == Voting.SUM, "the recipes of this package add votes up"
    codes = table.codes(forest.domain, rows)
    votes = sum(tree.votes[find_leaves(tree, codes)] for tree in forest.trees)
    return forest.probabilities(votes)


def figures(shares: Floats, labels: Integers) -> Figures:
    """The figures of class probabilities `[row, class]`; ties go to the first class."""
    of_class = np.clip(shares[np.arange(len(labels)), labels], LEAST_PROBABILITY, 1)
    area = auc(shares[:, 1], labels == 1, labels == 0) if shares.shape[1] == 2 else None
    right = float((shares.argmax(axis=1) == labels).mean())
    return Figures(right, area, float(-np.log(of_class).mean()))


def load(file: Path) -> Table:
    """A benchmark table, from a Parquet file with its domain beside it."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE rows AS FROM '{file}'")
    return Table(con, "rows", load_domain(file.with_suffix(".toml")))
