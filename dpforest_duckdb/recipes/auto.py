"""auto: one greedy tree with binary splits and counts at the leaves only.

Nothing is asked of inner nodes but their split: their class counts are the sums of their leaves'.
Depth follows from a noisy number of rows, which costs a small, planned share of the budget.
"""

from __future__ import annotations

import math

from dpforest_duckdb.forest import Tree
from dpforest_duckdb.privacy.accountant import Plan, Query, share
from dpforest_duckdb.privacy.units import NANO
from dpforest_duckdb.recipe import Counts, Recipe, Request
from dpforest_duckdb.smoothing import shrink_to_parent, sum_upward
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI
from dpforest_duckdb.voting import vote_by_shares

SHARES = (4, 48, 48)  # rows, splits, leaves, in percent
ROWS_PER_LEAF = 100  # rows times ε that a leaf should hold, so that noise does not drown it


def plan(request: Request) -> Plan:
    rows, splits, leaves = share(request.epsilon, SHARES)
    each = splits // (request.depth * request.trees)
    return Plan(
        (
            Query("rows", "discrete Laplace", rows // request.trees, 1, request.trees),
            Query("split", "permute-and-flip on Gini", each, request.depth, request.trees),
            Query("leaf", "discrete Laplace", leaves // request.trees, 1, request.trees),
        )
    )


def adapt(histogram: Counts, request: Request) -> int:
    """The depth at which leaves still hold ROWS_PER_LEAF / ε rows, from noisy class counts."""
    epsilon = request.epsilon / NANO / request.trees
    leaves = max(histogram.sum(), 1) * epsilon / ROWS_PER_LEAF / request.rows_per_unit
    return max(1, min(request.depth, round(math.log2(max(leaves, 1)))))


def finish(tree: Tree, request: Request, plan: Plan) -> Tree:
    cells, leaf = request.domain.cells, plan.query("leaf")
    assert leaf is not None
    noise = math.sqrt(2) * request.rows_per_unit * NANO / leaf.epsilon
    summed = sum_upward(tree, cells)
    return vote_by_shares(summed, shrink_to_parent(summed, cells, noise))


AUTO = Recipe(
    name="auto",
    title="Greedy tree, leaf counts only",
    year=2026,
    paper="this package",
    rows="all",
    ways="binary",
    choose=by_utility(GINI, "permute-and-flip"),
    trees=1,
    depth=8,
    plan=plan,
    adapt=adapt,
    finish=finish,
)
