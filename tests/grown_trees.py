"""Rows in memory and the trees that recipes grow on them, and which recipes do what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from steps import adapted, grow, seeded

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.engine.base import Gradients, Splits
from dpforest_duckdb.learners.private_bins import cut_at_medians, on_the_grid
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.tree import LEAF, SCALE, Tree, branch_of


def domain(cells: int = 3, attributes: int = 6, classes: int = 2) -> Domain:
    values = tuple(str(i) for i in range(cells))
    return Domain(
        tuple(
            Attribute(f"a{i}", "categorical", values, nullable=False, type=VARCHAR)
            for i in range(attributes)
        ),
        "y",
        tuple(f"c{i}" for i in range(classes)),
        VARCHAR,
    )


class Rows:
    """Rows in memory, counted and routed as the engine does."""

    def __init__(
        self, codes: np.ndarray, labels: np.ndarray, cells: tuple, classes: int, trees: int
    ):
        self.codes, self.labels, self.cells, self.classes = codes, labels, cells, classes
        self.node = np.tile(np.arange(trees)[:, None], (1, len(codes)))
        self.scores = np.zeros((len(codes), classes), dtype=np.int64)

    def count_classes(self, first: int, nodes: int) -> list[np.ndarray]:
        found = []
        for a, cells in enumerate(self.cells):
            table = np.zeros((nodes, cells, self.classes), dtype=np.int64)
            for node in self.node:
                mine = node >= first
                np.add.at(table, (node[mine] - first, self.codes[mine, a], self.labels[mine]), 1)
            found.append(table)
        return found

    def count_leaves(self, first: int, nodes: int) -> np.ndarray:
        return self.count_classes(first, nodes)[0].sum(axis=1)

    def route(self, splits: Splits, nodes: int) -> None:
        number = np.full(nodes, -1)  # of a node's split, -1 without one
        number[list(splits.node)] = np.arange(len(splits.node))
        attribute, kind, cell, first = map(
            np.array, (splits.attribute, splits.kind, splits.cell, splits.first)
        )
        for row in self.node:
            mine = number[row] >= 0
            n = number[row[mine]]
            row[mine] = first[n] + branch_of(kind[n], cell[n], self.codes[mine, attribute[n]])

    def count_scores(self, votes: list[np.ndarray], cuts: list[int]) -> np.ndarray:
        bins = [np.searchsorted(cuts, sum(own[row] for row in self.node)) for own in votes]
        counts = np.zeros((len(cuts) + 1,) * len(votes) + (self.classes,), dtype=np.int64)
        np.add.at(counts, (*bins, self.labels), 1)
        return counts

    def add_votes(self, trees: Sequence[Tree]) -> None:
        for tree in trees:
            self.scores = self.scores + tree.votes[tree.find(self.codes)]

    def sum_gradients(self, trees: Sequence[Tree], unit: Gradients) -> list[np.ndarray]:
        """As the statement does, in the same order of roundings."""
        weight = np.exp((self.scores - self.scores.max(axis=1, keepdims=True)) / SCALE)
        share = np.floor(unit.whole * weight / weight.sum(axis=1, keepdims=True)).astype(np.int64)
        own = np.eye(self.classes, dtype=np.int64)[self.labels] * unit.whole
        hessian = unit.hessian_numerator * share * (unit.whole - share)
        hessian //= unit.whole * unit.hessian_denominator
        parts = np.stack([own - share, hessian], axis=2)[:, 1 if self.classes == 2 else 0 :]
        found = []
        for tree in trees:
            sums = np.zeros((tree.nodes, 2 * parts.shape[1]), dtype=np.int64)
            np.add.at(sums, tree.find(self.codes), parts.reshape(len(parts), sums.shape[1]))
            found.append(sums)
        return found

    def count_pairs(self, attribute: int, bins: Sequence[int]) -> list[np.ndarray]:
        """`[bin, value, class]` of an attribute and each; rows may stand in it several times."""
        found, first = [], np.array(bins)[self.codes[:, attribute]]
        for other, size in enumerate(self.cells):
            table = np.zeros((max(bins) + 1, size, self.classes), dtype=np.int64)
            np.add.at(table, (first, self.codes[:, other], self.labels), 1)
            found.append(table)
        return found

    def sum_products(self, positions: Mapping[int, np.ndarray]) -> np.ndarray:
        placed = np.hstack([each[self.codes[:, number]] for number, each in positions.items()])
        return placed.T @ placed

    def count_labels(self, trees: Sequence[Tree]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels = np.stack([t.votes.argmax(axis=1)[t.find(self.codes)] for t in trees], axis=1)
        every, rows = np.unique(np.column_stack([labels, self.labels]), axis=0, return_counts=True)
        return every[:, :-1], every[:, -1], rows

    def rate_mixtures(
        self, models: Sequence[Sequence[Tree]], mixtures: Sequence[Sequence[int]], one_in: int
    ) -> np.ndarray:
        return np.arange(len(mixtures)) * len(self.labels)

    def drop(self) -> None:
        pass


def drawn_rows(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes `[row, attribute]` and classes in which two attributes act together."""
    codes = np.random.default_rng(seed).integers(0, 3, size=(rows, 6))
    return codes, ((codes[:, 0] == 1) ^ (codes[:, 3] == 2)).astype(np.int64)


def grown(
    recipe: Recipe,
    *,
    epsilon: int = 50 * NANO,
    trees: int = 1,
    rows: int = 4000,
    seed: int = 0,
    depth: int | None = None,
) -> tuple[list[Tree], Accountant, Domain]:
    public = domain()
    codes, labels = drawn_rows(rows, seed)
    request = recipe.request(public, epsilon, trees=trees, depth=depth)
    plan = recipe.plan(request)
    account = Accountant(plan, plan.epsilon, 0)
    randomness = seeded(seed)
    if recipe.adaptation.counts_rows:
        class_counts = np.bincount(labels, minlength=2)
        recipe, request = adapted(class_counts, recipe, request, account, randomness.noise)
    copies = recipe.learner.trees_at_once(request)
    table = Rows(codes, labels, public.cells, 2, copies)
    made = grow(table, recipe, request, account, randomness)
    finished = recipe.finish(made, request, account.plan)
    for before, tree in zip(made.trees, finished, strict=True):
        assert tree.nodes <= before.nodes
    return list(made.trees), account, public


def tree_of(counts: list[list[int]], kind: list[int], first: list[int]) -> Tree:
    k = np.array(kind)
    return Tree(
        k,
        np.where(k == LEAF, -1, 0),
        np.zeros(len(k), dtype=np.int64),
        np.array(first),
        np.array(counts),
        np.zeros((len(k), 2), dtype=np.int64),
        np.ones(len(k)),
    )


def mixed() -> Domain:
    """Four categorical attributes and two numeric ones."""
    numeric = tuple(
        Attribute(f"n{i}", "numeric", lower=0, upper=7, nullable=False) for i in range(2)
    )
    whole = Domain((*domain(attributes=4).attributes, *numeric), "y", ("c0", "c1"), VARCHAR)
    types = {a.name: VARCHAR if a.kind == "categorical" else INTEGER for a in whole.attributes}
    return whole.bind({**types, "y": VARCHAR})


def trained(
    recipe: Recipe, *, rows_per_unit: int = 1, depth: int | None = None
) -> tuple[Accountant, list[Tree]]:
    """One tree on many rows, from seeded exact noise."""
    request = recipe.request(mixed(), NANO, trees=1, depth=depth, rows_per_unit=rows_per_unit)
    plan = recipe.plan(request)
    account = Accountant(plan, plan.epsilon, 0)
    random = np.random.default_rng(0)
    first = random.integers(0, request.domain.cells[0], 30_000)
    labels = (first + random.integers(0, 2, 30_000) > 1).astype(np.int64)
    randomness = seeded()
    if recipe.adaptation.counts_rows:
        class_counts = np.bincount(labels, minlength=2)
        recipe, request = adapted(class_counts, recipe, request, account, randomness.noise)
    if account.plan.query("bins"):
        fine = [random.integers(0, 9, a.cells) for a in on_the_grid(request.domain).attributes]
        request = cut_at_medians(fine, request, account, randomness.bits)
    cells = request.domain.cells
    others = [random.integers(0, number, 30_000) for number in cells[1:]]
    copies = recipe.learner.trees_at_once(request)
    table = Rows(np.stack([first, *others], axis=1), labels, cells, 2, copies)
    grown = grow(table, recipe, request, account, randomness)
    return account, list(grown.trees)


BOOSTED = "boosted"  # asks of rounds, not of paths: see test_boosting.py
SPECIALISED = ("diffgen", "dt-diff")  # one draw for the whole table: see their own test
RIGOROUS = sorted(name for name in RECIPES if not RECIPES[name].flaws)
ON_PATHS = [name for name in RIGOROUS if name != BOOSTED]
VARIANTS = [
    pytest.param(f"{name}:{variant}", marks=pytest.mark.slow)
    for name in ON_PATHS
    for variant in RECIPES[name].variants
]
