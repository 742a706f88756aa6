"""tree-beside-sums: log-odds of the most informative attributes, and a greedy tree beside them.

Sums of log-odds count correlated attributes twice and miss interactions. A greedy tree does
neither, but its leaves have few rows. Both are released, and a private choice sets their weights.
If rows allow it, numeric attributes are cut at private medians first.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.tree_beside_sums import TREE_BESIDE_SUMS as LEARNER
from dpforest_duckdb.postprocess.pipeline import as_grown
from dpforest_duckdb.privacy.measure import PURE_DP
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery, counting, evenly, share
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours import auto_rules, log_odds
from dpforest_duckdb.recipes.plans import medians, mixture_choice
from dpforest_duckdb.recipes.recipe import Adaptation, as_many_as_attributes, own_recipe
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Request
from dpforest_duckdb.scoring.links import SOFTMAX
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI

MEDIAN_TURNS = 5  # of private medians: 32 bins, the most of an attribute

# The tree gets a part of the budget of tree and sums: a seventh for each leaf that the rows fill,
# within limits in percent (docs/auto.md).
LEAVES_FOR_ALL = 7
LEAST_PERCENT, MOST_PERCENT = 25, 60


def _budgets(request: Request) -> tuple[tuple[PlannedQuery, ...], int, int, int]:
    """Private medians, if they pay; the budgets of the mixture's choice, of the tree and of the
    sums, in nano-ε.
    """
    bins: tuple[PlannedQuery, ...] = ()
    rest = left(request, PURE_DP)
    if medians_pay(request):
        bins, rest = medians(request, rest, MEDIAN_TURNS)
    choice = int(rest * auto_rules.choice_part(request))
    tree = _tree_percent(request)
    grown, sums = share(rest - choice, (tree, 100 - tree))
    return bins, choice, grown, sums


def medians_pay(request: Request) -> bool:
    """Whether `tree-beside-sums` cuts numeric attributes at private medians.

    It does from the signal on from which `auto` picks boosting for two classes and mostly numeric
    attributes. A δ does not count, because sums use none.
    """
    return auto_rules.signal(replace(request, delta=0)) >= auto_rules.signal_of_two_classes()


def _tree_percent(request: Request) -> int:
    """The tree's percentage of the budget of tree and sums: the more leaves rows allow, the more.

    It has a least, as the recipe may be chosen by name for fewer rows than `auto` requires.
    """
    percent = 100 * auto_rules.leaves(request) / LEAVES_FOR_ALL
    return int(min(max(percent, LEAST_PERCENT), MOST_PERCENT))


def plan(request: Request) -> Plan:
    """Medians if they pay, drawn attributes and their tables, a greedy tree, the choice of weights.

    Costs are in nano-ε; a δ is not used.
    """
    bins, choice, grown, sums = _budgets(request)
    splits = evenly(grown // 2, request.depth)
    return Plan(
        (
            *preliminary_queries(request),
            *bins,
            *log_odds.drawn_tables(request, sums),
            PlannedQuery(Purpose.SPLIT, PERMUTE_AND_FLIP.on("Gini"), splits),
            counting(Purpose.LEAF, (grown // 2,)),
            mixture_choice(choice),
        )
    )


def adapt(histogram: Integers, request: Request) -> Request:
    """Attributes by the strength of the sums' budget, depth by that of the tree's.

    Both budgets are those of equally frequent classes, though the plan has others: with rare
    classes, fewer attributes and a deeper tree are better (docs/trials.md).
    """
    seen = auto_rules.careful(int(histogram.sum()), request)
    bins, _, grown, sums = _budgets(seen)
    sized = log_odds.adapt(histogram, replace(request, epsilon=sums))
    scale = noise_scale(grown, request.rows_per_unit) if grown else math.inf
    return replace(
        sized,
        epsilon=request.epsilon,
        rows=seen.rows,
        depth=auto_rules.depth_for(auto_rules.filled_leaves(seen.rows / scale), request.depth),
        domain=request.domain if bins else request.domain.recut(auto_rules.MOST),
    )


TREE_BESIDE_SUMS = own_recipe(
    name="tree-beside-sums",
    title="Log-odds of the most informative attributes, and a greedy tree",
    split_type="binary",
    choose=by_utility(GINI, PERMUTE_AND_FLIP),
    trees=as_many_as_attributes,
    depth=8,
    plan=plan,
    learner=LEARNER,
    adaptation=Adaptation(adapt, private_bounds=True, cuts_at_medians=True),
    finish=as_grown,
    limited_trees="trees of one split",
    link=SOFTMAX,
)
