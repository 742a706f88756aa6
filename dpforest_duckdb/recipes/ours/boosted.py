"""boosted: the log-odds of one attribute after another, then random trees on what remains.

For large tables. Each attribute is fitted to what the attributes before it left unexplained, so
correlated attributes are not counted twice. If most attributes are numeric, the first one is fitted
to what a linear discriminant of all numbers leaves: it takes two releases, where a sweep takes one
for each attribute. Random trees of four splits add what attributes say only together. With a δ
costs add up in ρ, which allows many more queries.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.boosting import BOOSTING
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.ours.auto_rules import means_start_boosting, random_trees_pay
from dpforest_duckdb.recipes.plans import FEW_TREES, START, in_rounds
from dpforest_duckdb.recipes.recipe import OURS, Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import at_random


def plan(request: Request) -> Plan:
    """Two sweeps, and all trees if the signal is strong; with a δ and a weak signal one sweep and
    few trees. Sweeps start at class means if these have little noise.
    """
    start = START if means_start_boosting(request) else 0
    turns, sweeps, trees, forest = 3, 2, 0, 0
    if random_trees_pay(request):
        turns, trees, forest = 4, request.trees, 50
    elif request.rho:
        sweeps, trees, forest = 1, max(1, request.trees // 4), FEW_TREES
    return in_rounds(request, turns=turns, sweeps=sweeps, trees=trees, forest=forest, start=start)


def adapt(histogram: Integers, request: Request) -> Request:
    rows = max(int(histogram.sum()), 1)
    return replace(request, rows=rows, histogram=tuple(histogram.tolist()))


BOOSTED = Recipe(
    name="boosted",
    title="Boosted log-odds and random trees",
    year=2026,
    paper="this package",
    rows="all",
    split_type="binary",
    choose=at_random,
    trees=64,
    depth=4,
    plan=plan,
    learner=BOOSTING,
    private_bins=True,
    private_bounds=True,
    adapt=adapt,
    finish=lambda grown, request, plan: list(grown.trees),
    link="softmax",
    only=OURS,
)
