"""boosted: the log-odds of one attribute after another, then random trees on what remains.

For large tables. Each attribute is fitted to what the attributes before it left unexplained, so
correlated attributes are not counted twice. If most attributes are numeric, the first one is fitted
to what a linear discriminant of all numbers leaves: the discriminant takes two releases, and a
sweep one for each attribute. With a δ, or where the signal is strong, random trees add what
attributes say only together. With a δ costs add up in μ², which allows many more queries.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.boosting import BOOSTING
from dpforest_duckdb.learners.class_means import ordered_attributes
from dpforest_duckdb.postprocess.pipeline import as_grown
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery, share
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto_rules import (
    classes_in,
    depth_for,
    finer_bins_pay,
    mixed,
    mostly_numeric,
    noise_of_products,
    signal,
    signal_is_strong,
    signal_of_two_classes,
)
from dpforest_duckdb.recipes.plans import medians
from dpforest_duckdb.recipes.recipe import Adaptation, own_recipe
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Request
from dpforest_duckdb.scoring.links import SOFTMAX

MOST_PAIRED = 40  # numeric and ordered attributes: class means of more were not measured
MOST_SPLITS = 8  # on a path of random trees
MOST_WITH_DELTA = 6  # with a δ there are more trees, so more splits would cost much time and SQL
LEAF = 6  # the rows of a random tree's leaf, in standard deviations of the noise in its sums
START = 20  # percent of what bins leave, for class means where boosting starts at them
# percent of what then remains, for random trees of two classes and of several, if only a few pay
FEW_TREES, FEW_TREES_OF_SEVERAL = 35, 20


def plan(request: Request) -> Plan:
    """Sweeps and random trees by the signal; sweeps start at class means that are clear.

    With a δ, a weak signal allows one sweep and a quarter of the trees. A stronger one allows two
    sweeps, all trees, and more turns of bins.

    Without a δ there are fewer queries, because ε is divided by their number. Two classes have one
    sweep, several have two, because their steps are shorter. A strong signal adds an eighth of the
    trees, the strongest a quarter.
    """
    two = classes_in(request) == 2
    pay, finer = _random_trees_pay(request), finer_bins_pay(request)
    if request.squared_mu:
        turns = 3 + pay + signal_is_strong(request) + finer
        few = FEW_TREES if two else FEW_TREES_OF_SEVERAL
        sweeps, part, forest = (2, 1, 50) if pay else (1, 4, few)
    else:
        turns, sweeps = 5 + finer, 1 if two else 2
        part, forest = (4 if finer else 8, 50) if pay else (0, 0)
    trees = max(1, request.trees // part) if part else 0
    planned = partial(_in_rounds, request, turns=turns, sweeps=sweeps, trees=trees, forest=forest)
    started = planned(start=START)
    return started if _means_are_clear(request, started) else planned(start=0)


def _means_are_clear(request: Request, started: Plan) -> bool:
    """Whether boosting starts at class means: if most attributes are numeric, and the products of
    pairs have little noise by this plan.
    """
    if len(ordered_attributes(request)) > MOST_PAIRED or not mostly_numeric(request):
        return False
    return noise_of_products(BOOSTING, started, request) <= constants.CLEAN


def _random_trees_pay(request: Request) -> bool:
    """Whether random trees of boosting are worth half of the budget.

    With a δ, rows count in proportion to how `mixed` the classes are: if some are rare, gradients
    vary less. Several classes then need a signal of ENOUGH, two classes a larger one.
    """
    if request.squared_mu:
        needed = signal_of_two_classes() if classes_in(request) == 2 else constants.ENOUGH
        return signal(request) * mixed(request) >= needed
    return signal_is_strong(request)


def _in_rounds(
    request: Request, *, turns: int, sweeps: int, trees: int, forest: int, start: int
) -> Plan:
    """A plan of boosting: in μ² with a δ, else in ε.

    After a noisy number of rows and `turns` of `medians`, `start` percent go to class means: half
    to sums, half to products. Of what then remains, `forest` percent go to random `trees`, the
    others to one or two `sweeps`: over all attributes, then over those for which it pays.
    """
    measure = request.measure
    mechanism = f"{measure.sums} on gradients"
    bins, rest = medians(request, left(request, measure), turns, measure)
    means, rest = share(rest, (start, 100 - start))
    started = 1 if start else 0
    random, sweep = share(rest, (forest, 100 - forest))
    stages = [
        (Purpose.MEANS, measure.blocks, means // 2, started),
        (Purpose.PRODUCTS, measure.blocks, means // 2, started),
        (Purpose.SWEEP, mechanism, sweep // sweeps, len(request.domain.attributes)),
        (Purpose.SWEEP_AGAIN, mechanism, sweep // sweeps, sweeps - 1),
        (Purpose.FOREST, mechanism, random, trees),
    ]
    queries = (
        PlannedQuery(purpose, how, (cost // times,), times, measure)
        for purpose, how, cost, times in stages
        if times
    )
    return Plan((*preliminary_queries(request), *bins, *queries))


def adapt(histogram: Integers, request: Request) -> Request:
    """Random trees as deep as their noise allows.

    An average leaf has about LEAF times as many rows as the standard deviation of the noise in its
    sums. Rows count in proportion to how `mixed` the classes are.
    """
    seen = request.counted(histogram)
    forest = plan(seen).query(Purpose.FOREST)
    noise = BOOSTING.deviation(forest, seen) if forest else None
    if not noise:
        return seen
    most = min(request.depth, MOST_WITH_DELTA) if request.squared_mu else request.depth
    return replace(seen, depth=depth_for(seen.rows * mixed(seen) / noise / LEAF, most))


BOOSTED = own_recipe(
    name="boosted",
    title="Boosted log-odds and random trees",
    split_type="binary",
    trees=64,
    depth=MOST_SPLITS,
    plan=plan,
    learner=BOOSTING,
    adaptation=Adaptation(adapt, private_bounds=True, all_in_mu=True, cuts_at_medians=True),
    finish=as_grown,
    limited_trees="random trees",
    link=SOFTMAX,
)
