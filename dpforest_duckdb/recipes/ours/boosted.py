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
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto_rules import (
    PURE,
    classes_in,
    deep_trees_pay,
    finer_bins_pay,
    mixed,
    mostly_numeric,
    noise_of_products,
    signal,
)
from dpforest_duckdb.recipes.plans import medians
from dpforest_duckdb.recipes.recipe import Adaptation, own_recipe
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Request

MOST_PAIRED = 40  # numeric and ordered attributes: class means of more were not measured
SHALLOW, DEEP, DEEPEST = 4, 6, 8  # the most splits on a path of random trees, by the signal
START = 20  # percent of what bins leave, for class means where boosting starts at them
FEW_TREES = 20  # percent of what then remains, for random trees, if only a few pay


def plan(request: Request) -> Plan:
    """Sweeps and random trees by the signal; sweeps start at class means that are clear.

    With a δ: one sweep and a quarter of the trees; with a stronger signal two sweeps and all trees,
    and more turns of bins. Without a δ there are five turns, or six with a very strong signal, and
    one sweep, because ε is divided by the number of queries; with a strong signal there are a
    quarter of the trees, and fewer if they have more than DEEP splits.
    """
    few = max(1, request.trees // 4 * DEEP // max(DEEP, request.depth))
    pay = _random_trees_pay(request)
    if request.squared_mu:
        turns = 3 + pay + deep_trees_pay(request) + finer_bins_pay(request)
        sweeps, trees, forest = (2, request.trees, 50) if pay else (1, few, FEW_TREES)
    else:
        turns = 5 + finer_bins_pay(request)
        sweeps, trees, forest = (1, few, 50) if pay else (1, 0, 0)
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
    """Whether random trees of boosting are worth half of the budget. Without a δ only deep ones
    are.

    With one, rows count in proportion to how `mixed` the classes are: if some are rare, gradients
    vary less. Two classes need PURE times the signal of several.
    """
    if request.squared_mu:
        needed = constants.ENOUGH * (PURE if classes_in(request) == 2 else 1)
        return signal(request) * mixed(request) >= needed
    return deep_trees_pay(request)


def _in_rounds(
    request: Request, *, turns: int, sweeps: int, trees: int, forest: int, start: int
) -> Plan:
    """A plan of boosting: in μ² with a δ, else in ε.

    After a noisy number of rows and `turns` of `medians`, `start` percent go to class means: half
    to sums, half to products. Of what then remains, `forest` percent go to random `trees`, the
    others to `sweeps` over all attributes.
    """
    measure = request.measure
    mechanism = f"{measure.sums} on gradients"
    bins, rest = medians(request, left(request, measure), turns, measure)
    means, rest = share(rest, (start, 100 - start))
    started = 1 if start else 0
    random, sweep = share(rest, (forest, 100 - forest))
    stages = [
        ("means", measure.blocks, means // 2, 1, started),
        ("products", measure.blocks, means // 2, 1, started),
        ("sweep", mechanism, sweep, sweeps, len(request.domain.attributes)),
        ("forest", mechanism, random, 1, trees),
    ]
    queries = (
        PlannedQuery(purpose, how, (cost // times // often,) * often, times, measure)
        for purpose, how, cost, often, times in stages
        if times
    )
    return Plan((*preliminary_queries(request), *bins, *queries))


def adapt(histogram: Integers, request: Request) -> Request:
    """Random trees of at most DEEP splits, or of SHALLOW if the signal is not strong. Without a δ
    there are few trees, and a very strong signal allows them all splits.
    """
    rows = max(int(histogram.sum()), 1)
    seen = replace(request, rows=rows, histogram=tuple(histogram.tolist()))
    deepest = DEEPEST if finer_bins_pay(seen) and not seen.squared_mu else DEEP
    return replace(seen, depth=min(seen.depth, deepest if deep_trees_pay(seen) else SHALLOW))


BOOSTED = own_recipe(
    name="boosted",
    title="Boosted log-odds and random trees",
    split_type="binary",
    trees=64,
    depth=DEEPEST,
    plan=plan,
    learner=BOOSTING,
    adaptation=Adaptation(adapt, private_bounds=True, all_in_mu=True, cuts_at_medians=True),
    finish=as_grown,
    limited_trees="random trees",
    link="softmax",
)
