"""The level loop: count, release what was planned, choose splits, route; until no node is open.

Only noisy counts and drawn splits go into the trees. True counts stay here and in the functions
that choose splits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Level, TrainingContext
from dpforest_duckdb.splits.candidates import Candidates, candidates
from dpforest_duckdb.splits.choose import NO_SPLIT, Choice, Chooser, Drawn
from dpforest_duckdb.splits.limits import fitting, most_counted, most_leaves, most_reached
from dpforest_duckdb.tree import LEAF


@dataclass(frozen=True)
class _Frontier:
    """The open nodes of a depth; all fields are public or released.

    `nodes[i]` is a node's number. `reachable[i, cell]` are the cells that its rows can be in; it is
    empty at the last depth, where no node is split.
    `expected[i]` is its number of rows if every split sends equal parts to its branches.
    """

    nodes: Integers
    reachable: Mask
    expected: Floats


@dataclass
class _Levels:
    """One pass through the levels of all trees."""

    rows: CodedRows
    context: TrainingContext
    growth: Growth = field(init=False)
    _choose: Chooser = field(init=False)
    _candidates: Candidates = field(init=False)

    def __post_init__(self) -> None:
        request, choose = self.context.request, self.context.recipe.choose
        assert choose is not None, "a recipe of the level loop says how splits are drawn"
        self._choose = choose
        self.growth = Growth(request.domain.cells, request.trees, len(request.domain.classes))
        self._candidates = candidates(request.domain, self.context.recipe.split_type)

    def run(self) -> Growth:
        """Split level by level, until no node is open."""
        request, observe = self.context.request, self.context.observe
        roots = np.arange(request.trees)
        frontier = _Frontier(
            roots,
            np.ones((len(roots), sum(request.domain.cells)), dtype=np.bool_),
            np.full(len(roots), float(max(request.rows, 1))),
        )
        for depth in range(request.deepest):
            observe(Event(Phase.CHOOSE_SPLITS, depth + 1, request.deepest, "depth"))
            below = self._split_level(frontier, depth)
            if below is None:
                return self.growth
            frontier = below
        self._release_nodes(frontier, [], request.deepest)
        return self.growth

    def _split_level(self, frontier: _Frontier, depth: int) -> _Frontier | None:
        """Split the open nodes of a depth; returns their children, None if all become leaves."""
        context, plan = self.context, self.context.accountant.plan
        first = int(frontier.nodes.min())
        counts: list[Integers] = []
        if plan.query(Purpose.SPLIT):
            here, span = frontier.nodes - first, self.growth.nodes - first
            counts = [table[here] for table in self.rows.count_classes(first, span)]
        noisy = self._release_nodes(frontier, counts, depth)
        allowed = self._candidates.allowed(frontier.reachable)
        may_split = allowed.any(axis=1)
        if context.recipe.stop is not None:
            may_split &= ~context.recipe.stop(self._level(frontier, allowed, noisy))
        nodes = np.flatnonzero(may_split)
        if not len(nodes):
            return None
        choice = Choice(
            candidates=self._candidates,
            counts=counts,
            allowed=allowed,
            reachable=frontier.reachable,
            noisy=noisy,
            epsilon=context.accountant.spend(Purpose.SPLIT, depth) if counts else 0,
            rows_per_unit=context.request.rows_per_unit,
            noise=context.randomness.noise,
            bits=context.randomness.bits,
            depth=depth,
            weights=context.request.weights,
            rows=context.request.rows,
        ).of(nodes)
        drawn = self._choose(choice)
        size = frontier.expected if noisy is None else noisy.sum(axis=1).astype(np.float64)
        within = self._within_limits(nodes, drawn, size[nodes], depth)
        return self._apply(frontier, *within, last=depth + 1 == context.request.deepest)

    def _level(self, frontier: _Frontier, allowed: Mask, noisy: Integers | None) -> Level:
        """What a stopping rule may know about the open nodes."""
        context, splits = self.context, self._candidates
        widest = np.where(allowed, splits.described_branches, 0).max(axis=1)
        return Level(noisy, frontier.expected, widest, context.request, context.accountant.plan)

    def _within_limits(
        self, nodes: Integers, drawn: Drawn, size: Floats, depth: int
    ) -> tuple[Integers, Drawn]:
        """The nodes whose splits fit into the limits, largest `size[node]` first, and their draws.

        Uses released figures and draws only; the draws of the other nodes are discarded.
        """
        request, growth = self.context.request, self.growth
        leaves = most_leaves(request.domain)
        opened = leaves
        if depth + 1 < request.deepest:
            counted = self.context.accountant.plan.query(Purpose.SPLIT)
            opened = (most_counted if counted else most_reached)(request.domain)
        arity = np.where(drawn.candidate == NO_SPLIT, 1, self._candidates.arity[drawn.candidate])
        fits = fitting(arity, size, leaves - growth.leaves, opened)
        growth.limited += int((~fits).sum())
        return nodes[fits], drawn.of(fits)

    def _apply(
        self, frontier: _Frontier, nodes: Integers, drawn: Drawn, *, last: bool
    ) -> _Frontier | None:
        """Make the drawn splits and route the rows; returns the children, None without a split."""
        splits, growth = self._candidates, self.growth
        divided = drawn.candidate != NO_SPLIT
        if not divided.any():
            return None
        split, chosen = nodes[divided], drawn.candidate[divided]
        born = growth.nodes
        made = growth.split_by(frontier.nodes[split], splits, chosen)
        children = np.arange(born, growth.nodes)
        self.rows.route(made, growth.nodes)
        if drawn.children is not None:
            growth.release(children, np.concatenate(drawn.children), drawn.noise)
        reachable = frontier.reachable[:0]
        if not last:
            reachable = splits.descend(frontier.reachable[split], chosen)
        return _Frontier(
            children,
            reachable,
            splits.parts(frontier.expected[split], chosen),
        )

    def _release_nodes(
        self, frontier: _Frontier, counts: list[Integers], depth: int
    ) -> Integers | None:
        """The noisy histogram or size of each open node, whichever the plan has.

        `counts` are the level's private tables, if they were counted already.
        """
        plan = self.context.accountant.plan
        if plan.query(Purpose.HISTOGRAM):
            return self._release_histograms(frontier, counts, depth)
        if plan.query(Purpose.SIZE):
            return self._release_sizes(frontier, counts, depth)
        return None

    def _release_histograms(
        self, frontier: _Frontier, counts: list[Integers], depth: int
    ) -> Integers:
        """`[node, class]`, which the trees keep."""
        context, k = self.context, self.context.request.rows_per_unit
        cost = context.accountant.spend(Purpose.HISTOGRAM, depth)
        noisy = context.randomness.noise.laplace(self._count(frontier, counts), cost, k)
        self.growth.release(frontier.nodes, noisy, laplace_deviation(cost, k))
        return noisy

    def _release_sizes(self, frontier: _Frontier, counts: list[Integers], depth: int) -> Integers:
        """`[node, 1]`, which no tree keeps."""
        context, k = self.context, self.context.request.rows_per_unit
        cost = context.accountant.spend(Purpose.SIZE, depth)
        private = self._count(frontier, counts).sum(axis=1, keepdims=True)
        return context.randomness.noise.laplace(private, cost, k)

    def _count(self, frontier: _Frontier, counts: list[Integers]) -> Integers:
        """The private rows of each class, `[node, class]`."""
        if counts:
            classes: Integers = counts[0].sum(axis=1)
            return classes
        first = int(frontier.nodes.min())
        return self.rows.count_leaves(first, self.growth.nodes - first)[frontier.nodes - first]


def release_leaves(rows: CodedRows, context: TrainingContext, growth: Growth) -> Growth:
    """Release what the recipe queries at leaves, all at once."""
    if context.accountant.plan.query(Purpose.LEAF) is None:
        return growth
    context.observe(Event(Phase.COUNT_LEAVES))
    leaves, k = np.flatnonzero(growth.kind == LEAF), context.request.rows_per_unit
    private = rows.count_leaves(0, growth.nodes)[leaves]
    cost = context.accountant.spend(Purpose.LEAF)
    query, randomness = context.recipe.leaf, context.randomness
    noisy = query.ask(private, cost, k, randomness.noise, randomness.bits)
    growth.release(leaves, noisy, query.deviation(cost, k))
    return growth


def split_levels(rows: CodedRows, context: TrainingContext) -> Growth:
    """Split level by level, until no node is open; there is no query for the leaves."""
    return _Levels(rows, context).run()


def grow_levels(rows: CodedRows, context: TrainingContext) -> Growth:
    """Split level by level, then query the leaves."""
    return release_leaves(rows, context, split_levels(rows, context))


def _grow(rows: CodedRows, context: TrainingContext) -> Grown:
    growth = grow_levels(rows, context)
    return Grown(growth.finished(), limited=growth.limited)


LEVELS = Learner(_grow, trees_at_once=lambda request: request.trees)
