"""What the code of Suihkonen's thesis does where its text says something else.

Read in ssuihko/DPimplementation, COPIEDHERE/Forest_434.py. Each is tried as an experiment of
`papers.py`; none of it is private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.levels import LEVELS, split_levels
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.published.thesis_forest import LEAST_ROWS, POINTS
from dpforest_duckdb.recipes.published.thesis_splits import at_points
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Grown, Learner, TrainingContext
from dpforest_duckdb.splits.choose import NO_SPLIT, Choice, Chooser, Drawn, among
from dpforest_duckdb.splits.published import by_points, full_shares, unless_few_or_pure
from dpforest_duckdb.splits.utilities import BALANCE, Utility, gini
from dpforest_duckdb.tree import LEAF, MULTIWAY, THRESHOLD


def rows_times_gini(counts: Integers) -> Integers:
    """Gini weighted by the rows of the node twice."""
    return gini(counts) * counts.sum(axis=(-2, -1))


MEDIAN = replace(BALANCE, monotone=True)
SQUARES = Utility("N · Σ (y − ȳ)²", rows_times_gini, sensitivity=8, monotone=True)


def its_draws(form: Recipe, of: Callable[[int], float] = math.sqrt) -> dict[str, Any]:
    """The draws of the code, among `of` m attributes.

    Medians go without the factor 2. The attribute is drawn by the sum of squares Σ (y − ȳ)², where
    (5.3) has the mean, at the sensitivity of the mean, 4/N, and without the factor 2: its exponent
    is 2N times (5.3).
    """
    drawn = among(by_points(MEDIAN, SQUARES, full_shares(math.isqrt)), of)
    return {"choose": unless_few_or_pure(at_points(drawn, POINTS), LEAST_ROWS)}


def its_nodes(form: Recipe, of: Callable[[int], float] = math.sqrt) -> dict[str, Any]:
    """The draws of the code, and only the nodes that it splits."""
    return {**its_draws(form, of), "learner": Learner(_grow_its_nodes, LEVELS.trees_at_once)}


def its_values(form: Recipe, of: Callable[[int], float] = math.sqrt) -> dict[str, Any]:
    """The draws and nodes of the code, among the splits that it draws from.

    A category that no row of the node has is never drawn, and an attribute is split once on a path.
    If the attributes drawn have no split left, the code draws others; here it is among all splits.
    """
    drawn = where_both_sides_have_rows(by_points(MEDIAN, SQUARES, full_shares(math.isqrt)))
    some = once_on_a_path(among(drawn, of))

    def choose(choice: Choice) -> Drawn:
        found = some(choice).candidate
        none = np.flatnonzero(found == NO_SPLIT)
        found[none] = drawn(choice.of(none)).candidate
        return Drawn(found)

    ends = unless_few_or_pure(at_points(choose, POINTS), LEAST_ROWS)
    return {**its_nodes(form), "choose": ends}


def its_range(form: Recipe) -> dict[str, Any]:
    """The draws of the code at ten points of the range that the node's own values have."""
    drawn = among(by_points(MEDIAN, SQUARES, full_shares(math.isqrt)))

    def choose(choice: Choice) -> Drawn:
        splits, allowed = choice.candidates, choice.allowed.copy()
        for a in splits.numeric:
            cuts = splits.of(a)[splits.kind[splits.of(a)] == THRESHOLD]
            held = choice.counts[a].sum(axis=2)[:, : len(cuts) + 1] > 0  # [node, bin]
            low, high = held.argmax(axis=1), len(cuts) - held[:, ::-1].argmax(axis=1)
            steps = np.arange(1, POINTS + 1) / (POINTS + 1)
            points = low[:, None] + (high - low)[:, None] * steps
            kept = np.zeros((len(held), len(cuts)), dtype=np.bool_)
            kept[np.arange(len(held))[:, None], points.astype(np.int64)] = True
            allowed[:, cuts] &= kept & (low < high)[:, None]
        return where_any(drawn, replace(choice, allowed=allowed))

    return {"choose": unless_few_or_pure(choose, LEAST_ROWS), "bins": 250}


def where_both_sides_have_rows(chooser: Chooser) -> Chooser:
    """The chooser among the splits with rows on both sides. NOT private."""

    def choose(choice: Choice) -> Drawn:
        splits, allowed = choice.candidates, choice.allowed.copy()
        for a in range(len(splits.cells)):
            rows = splits.branch_counts(choice.counts, a).sum(axis=3)
            allowed[:, splits.of(a)] &= (rows > 0).all(axis=2)
        return where_any(chooser, replace(choice, allowed=allowed))

    return choose


def once_on_a_path(chooser: Chooser) -> Chooser:
    """The chooser without splits by a category of attributes that the path has split."""

    def choose(choice: Choice) -> Drawn:
        splits = choice.candidates
        whole = np.stack([choice.reachable[:, cells].all(axis=1) for cells in splits.slices], 1)
        allowed = choice.allowed & (whole[:, splits.attribute] | (splits.kind == THRESHOLD))
        return where_any(chooser, replace(choice, allowed=allowed))

    return choose


def where_any(chooser: Chooser, choice: Choice) -> Drawn:
    """What the chooser draws; nodes without a split that is allowed stay leaves."""
    drawn = np.full(len(choice.allowed), NO_SPLIT, dtype=np.int64)
    nodes = np.flatnonzero(choice.allowed.any(axis=1))
    if len(nodes):
        drawn[nodes] = chooser(choice.of(nodes)).candidate
    return Drawn(drawn)


def ended(growth: Growth, deepest: int) -> Mask:
    """`[node]`: which nodes its code makes leaves, of trees that were split at every node.

    The code grows a tree depth first, the first child before the second. It compares d_m with the
    depth of the node that was split last, wherever that is, and not with the depth of the node at
    hand. So once a path has d_m splits, every node that is still open becomes a leaf.
    """
    closed = growth.kind == LEAF
    for root in range(growth.trees):
        last, open_ = 0, [(root, 1)]  # the root has depth 1 there
        while open_:
            node, depth = open_.pop()
            closed[node] |= last >= deepest
            if not closed[node]:
                last, first = depth, int(growth.first[node])
                open_ += [(first + 1, depth + 1), (first, depth + 1)]
    return closed


def _grow_its_nodes(rows: CodedRows, context: TrainingContext) -> Grown:
    """Split every node, cut the trees as the code does, and draw the labels of what is left.

    Splits are drawn node by node, so those of the nodes that stay are as if no other was drawn.
    """
    growth = split_levels(rows, context)
    assert not (growth.kind == MULTIWAY).any(), "its splits have two sides"
    closed = ended(growth, context.request.deepest)
    counts = rows.count_leaves(0, growth.nodes)
    for node in reversed(np.flatnonzero(growth.kind != LEAF).tolist()):
        first = growth.first[node]
        counts[node] = counts[first] + counts[first + 1]
    cost, k = context.accountant.spend(Purpose.LEAF), context.request.rows_per_unit
    noise, bits = context.randomness.noise, context.randomness.bits
    leaves = np.flatnonzero(closed)
    growth.release(leaves, context.recipe.leaf.ask(counts[leaves], cost, k, noise, bits), 0.0)
    cells = context.request.domain.cells
    trees = [
        tree.cut(closed[growth.tree == number], cells)
        for number, tree in enumerate(growth.finished())
    ]
    return Grown(trees, limited=growth.limited)
