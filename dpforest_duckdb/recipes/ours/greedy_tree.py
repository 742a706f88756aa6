"""greedy-tree: one greedy tree with binary splits and counts at the leaves only.

Inner nodes have no query but their split: their class counts are the sums of their leaves'. The
depth follows from a noisy number of rows, which costs a small, planned share of the budget.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.postprocess.pipeline import each, leaf_noise
from dpforest_duckdb.postprocess.shrinkage import shrink_to_parent, sum_upward
from dpforest_duckdb.postprocess.voting import vote_by_shares
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.privacy.plan import LAPLACE, Plan
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP
from dpforest_duckdb.recipes.ours.auto_rules import depth_for, filled_leaves
from dpforest_duckdb.recipes.plans import half_to_leaves
from dpforest_duckdb.recipes.recipe import Adaptation, own_recipe
from dpforest_duckdb.recipes.row_count_queries import rows_share
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI
from dpforest_duckdb.tree import Tree


def adapt(histogram: Integers, request: Request) -> Request:
    """The depth at which leaves still hold ENOUGH / ε rows, from noisy class counts."""
    rows = max(int(histogram.sum()), 1)
    noise = noise_scale(request.epsilon, request.rows_per_unit) * request.trees
    depth = depth_for(filled_leaves(rows / noise), request.depth)
    return replace(request, depth=depth, rows=rows)


def vote(tree: Tree, request: Request, plan: Plan) -> Tree:
    """The tree with class shares as votes: those of a node are moved towards its parent's."""
    cells = request.domain.cells
    summed = sum_upward(tree, cells)
    return vote_by_shares(summed, shrink_to_parent(summed, cells, leaf_noise(request, plan)))


def plan(request: Request) -> Plan:
    """A noisy number of rows; of the rest, half for splits, equally per depth, half for leaves."""
    rows = rows_share(request)
    return half_to_leaves(PERMUTE_AND_FLIP, LAPLACE, by="Gini", rows=rows)(request)


GREEDY_TREE = own_recipe(
    name="greedy-tree",
    title="Greedy tree, leaf counts only",
    split_type="binary",
    choose=by_utility(GINI, PERMUTE_AND_FLIP),
    trees=1,
    depth=8,
    plan=plan,
    adaptation=Adaptation(adapt),
    finish=each(vote),
)
