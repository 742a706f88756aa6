"""Training: the plan, the debit, the level loop, the finished forest. The one place of its order."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.engine.base import CodedRows, Splits
from dpforest_duckdb.forest import LEAF, MULTIWAY, Tree
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.bits import Bits, SecureBits, SeededBits
from dpforest_duckdb.privacy.noise import CountNoise, ExactNoise, OpenDPNoise
from dpforest_duckdb.recipe import Recipe, Request
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import Choice

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Randomness:
    """Where noise, selection and the salt come from; private only from the system's own source."""

    noise: CountNoise
    bits: Bits
    salt: int

    @property
    def private(self) -> bool:
        return self.noise.private and self.bits.private

    @staticmethod
    def secure() -> Randomness:
        return Randomness(OpenDPNoise(), SecureBits(), secrets.randbits(63))

    @staticmethod
    def seeded(seed: int) -> Randomness:
        """For experiments: repeatable, and therefore not private."""
        bits = SeededBits(seed)
        return Randomness(ExactNoise(bits), bits, int(bits.words(1)[0] >> np.uint64(1)))


@dataclass
class Growth:
    """The nodes of all trees while they grow, numbered by depth; node t is the root of tree t.

    `noisy[node, class]` holds released histograms (-1 rows of nothing yet are zeros), `tree` and
    `reachable[node, cell]` are public.
    """

    cells: tuple[int, ...]
    trees: int
    classes: int
    tree: Array = field(init=False)
    kind: Array = field(init=False)
    attribute: Array = field(init=False)
    cell: Array = field(init=False)
    first: Array = field(init=False)
    noisy: Array = field(init=False)

    def __post_init__(self) -> None:
        self.tree = np.arange(self.trees)
        self.kind = np.full(self.trees, LEAF, dtype=np.int64)
        self.attribute = np.full(self.trees, -1, dtype=np.int64)
        self.cell = np.zeros(self.trees, dtype=np.int64)
        self.first = np.full(self.trees, -1, dtype=np.int64)
        self.noisy = np.zeros((self.trees, self.classes), dtype=np.int64)

    @property
    def nodes(self) -> int:
        return len(self.kind)

    def split(self, nodes: Array, attribute: Array, kind: Array, cell: Array) -> Splits:
        """Split nodes and append their children."""
        arity = np.where(kind == MULTIWAY, np.array(self.cells)[attribute], 2)
        first = self.nodes + np.concatenate([[0], np.cumsum(arity)[:-1]])
        self.kind[nodes], self.attribute[nodes] = kind, attribute
        self.cell[nodes], self.first[nodes] = cell, first
        born = int(arity.sum())
        self.tree = np.concatenate([self.tree, np.repeat(self.tree[nodes], arity)])
        self.kind = np.concatenate([self.kind, np.full(born, LEAF)])
        self.attribute = np.concatenate([self.attribute, np.full(born, -1)])
        self.cell = np.concatenate([self.cell, np.zeros(born, dtype=np.int64)])
        self.first = np.concatenate([self.first, np.full(born, -1)])
        self.noisy = np.concatenate(
            [self.noisy, np.zeros((born, self.classes), dtype=np.int64)]
        )
        return Splits(
            node=nodes.tolist(),
            attribute=attribute.tolist(),
            kind=kind.tolist(),
            cell=cell.tolist(),
            first=first.tolist(),
        )

    def finished(self) -> list[Tree]:
        """Each tree on its own, its nodes renumbered from its root."""
        grown = []
        for tree in range(self.trees):
            own = np.flatnonzero(self.tree == tree)
            number = np.zeros(self.nodes, dtype=np.int64)
            number[own] = np.arange(len(own))
            first = self.first[own]
            grown.append(
                Tree(
                    kind=self.kind[own],
                    attribute=self.attribute[own],
                    cell=self.cell[own],
                    first=np.where(first < 0, -1, number[first]),
                    counts=self.noisy[own],
                    votes=np.zeros((len(own), self.classes), dtype=np.int64),
                )
            )
        return grown


def grow(
    rows: CodedRows,
    recipe: Recipe,
    request: Request,
    account: Accountant,
    randomness: Randomness,
    progress: Progress = lambda phase, done, total: None,
) -> list[Tree]:
    """The level loop: count, release what was planned, choose, route; until no node is open.

    Only noisy histograms and drawn splits enter the trees; true counts stay in this function.
    """
    domain, k, noise = request.domain, request.rows_per_unit, randomness.noise
    growth = Growth(domain.cells, request.trees, len(domain.classes))
    ways = candidates(domain, recipe.ways)
    reachable = np.ones((request.trees, sum(domain.cells)), dtype=np.bool_)
    plan, depth, limit = account.plan, 0, request.depth
    first, level = 0, request.trees
    while True:
        progress("depth", depth, limit)
        asked = plan.query("histogram")
        counts = rows.count_classes(first, level) if depth < limit else []
        if asked or depth == 0:
            classes = counts[0].sum(axis=1) if counts else rows.count_leaves(first, level)
        if depth == 0 and recipe.adapt and plan.query("rows"):
            noisy = noise.laplace(classes, account.spend("rows"), k)
            limit = recipe.adapt(noisy, request)
        histogram = noise.laplace(classes, account.spend("histogram"), k) if asked else None
        if histogram is not None:
            growth.noisy[first : first + level] = histogram
        if depth >= limit:
            break
        allowed = ways.allowed(reachable)
        open_ = allowed.any(axis=1)
        if recipe.stop and histogram is not None:
            open_ &= ~recipe.stop(histogram)
        nodes = np.flatnonzero(open_)
        epsilon = account.spend("split", _level_epsilon(account, limit, request))
        if not len(nodes):
            break
        choice = Choice(ways, counts, allowed, histogram, epsilon, k, randomness.bits)
        if depth == 0 and recipe.distinct_roots:
            chosen = _distinct(choice, nodes, recipe)
        else:
            chosen = recipe.choose(choice.of(nodes))
        splits = growth.split(
            first + nodes, ways.attribute[chosen], ways.kind[chosen], ways.cell[chosen]
        )
        rows.route(splits, growth.nodes)
        reachable = np.concatenate(
            [ways.descend(reachable[n], c) for n, c in zip(nodes, chosen, strict=True)]
        )
        first, level, depth = first + level, len(reachable), depth + 1
    if plan.query("leaf"):
        leaves = np.flatnonzero(growth.kind == LEAF)
        counted = rows.count_leaves(0, growth.nodes)[leaves]
        growth.noisy[leaves] = noise.laplace(counted, account.spend("leaf"), k)
    return growth.finished()


def _level_epsilon(account: Accountant, limit: int, request: Request) -> int:
    """ε of a depth's splits: what was planned, the same total shared by fewer depths if adapted."""
    query = account.plan.query("split")
    assert query is not None, "a tree that splits has planned its splits"
    return query.epsilon * query.levels // limit


def _distinct(choice: Choice, nodes: Array, recipe: Recipe) -> Array:
    """Roots one after the other, each without the attributes of those before it.

    What is left out was drawn before: released, so the candidates of a later root are public.
    """
    chosen: list[int] = []
    for node in nodes:
        own = choice.of(np.array([node]))
        taken = np.isin(choice.candidates.attribute, choice.candidates.attribute[chosen])
        own.allowed[:, taken] = False
        chosen.append(int(recipe.choose(own)[0]))
    return np.array(chosen, dtype=np.int64)
