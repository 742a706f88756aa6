"""Selective aggregation: remove trees from a forest one by one by its errors (Guan et al. 2020).

The recipe is in `guan_dpgdf.py`. This is Algorithm 2 as the thesis prints it (its Algorithm 4.2).
It uses either the true errors, which is NOT private, or draws that are paid for. One more row
raises each error of a round by 0 or 1 and lowers none. So a round is a draw by a monotone utility
of sensitivity 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.levels import LEVELS, grow_levels, split_levels
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, TrainingContext
from dpforest_duckdb.splits.choose import draw_best
from dpforest_duckdb.tree import LEAF, Tree, counts_of

Pick = Callable[[Integers, int], int]  # the index of the least private error in a round


def aggregate(
    labels: Integers, truth: Integers, rows: Integers, classes: int, pick: Pick
) -> list[int]:
    """The trees that Algorithm 2 keeps, ascending, from the labels that they give.

    `labels[combination, tree]`, `truth[combination]` and `rows[combination]` are private. In round
    i each remaining tree is left out once, which gives the errors e_ij. The tree with the least
    e_ij is removed, and the rest has the error E_i. The result is the set with the least error E_k
    of all rounds. `pick` finds the least error of several. An ensemble predicts the class with most
    votes, the first one in a tie.
    """
    votes = np.eye(classes, dtype=np.int64)[labels]  # [combination, tree, class]
    left, together = list(range(labels.shape[1])), votes.sum(axis=1)
    sets, errors_of_sets = list[list[int]](), list[int]()
    for turn in range(labels.shape[1] - 1):
        without = together[:, None] - votes[:, left]  # [combination, removed tree, class]
        errors = (rows[:, None] * (without.argmax(axis=2) != truth[:, None])).sum(axis=0)
        gone = pick(errors, turn)
        together = without[:, gone]
        left = [tree for tree in left if tree != left[gone]]
        sets.append(left)
        errors_of_sets.append(int(errors[gone]))
    return sets[pick(np.array(errors_of_sets), len(sets))] if sets else left


def least(errors: Integers, turn: int) -> int:
    """The index of the least error, the first in a tie. NOT private."""
    return int(errors.argmin())


def drawn(context: TrainingContext) -> Pick:
    """The least error by permute-and-flip, at the round's planned cost."""

    def pick(errors: Integers, turn: int) -> int:
        cost, k = context.accountant.spend(Purpose.AGGREGATION, turn), context.request.rows_per_unit
        return draw_best(-errors, cost, k, context.randomness.bits)

    return pick


def _aggregated(rows: CodedRows, context: TrainingContext, growth: Growth, pick: Pick) -> Grown:
    trees = growth.finished()
    voting = [_by_majority(tree) for tree in trees]
    chosen = aggregate(*rows.count_labels(voting), len(context.request.domain.classes), pick)
    return Grown([trees[number] for number in chosen], limited=growth.limited)


def _by_majority(tree: Tree) -> Tree:
    return replace(tree, votes=counts_of(tree))


def _as_published(rows: CodedRows, context: TrainingContext) -> Grown:
    """Leaves have the budget of their layer (4.34), and trees are removed by the true errors."""
    growth, accountant = split_levels(rows, context), context.accountant
    context.observe(Event(Phase.COUNT_LEAVES))
    private = rows.count_leaves(0, growth.nodes)
    layers, k = np.maximum(growth.depths(), 1), context.request.rows_per_unit
    for layer in range(1, context.request.depth + 1):
        leaves = np.flatnonzero((layers == layer) & (growth.kind == LEAF))
        cost = accountant.spend(Purpose.LEAF_OF_A_LAYER, layer - 1)
        noisy = context.randomness.noise.laplace(private[leaves], cost, k)
        growth.release(leaves, noisy, laplace_deviation(cost, k))
    return _aggregated(rows, context, growth, least)


def _paid(rows: CodedRows, context: TrainingContext) -> Grown:
    return _aggregated(rows, context, grow_levels(rows, context), drawn(context))


BY_TRUE_ERRORS = replace(LEVELS, grow=_as_published, compares_trees=True)
BY_DRAWN_ERRORS = replace(LEVELS, grow=_paid, compares_trees=True)
