"""boosted: the log-odds of one attribute after another, then random trees on what remains.

For large tables. Each attribute is fitted to what the attributes before it left unexplained, so
correlated attributes are not counted twice. Random trees of four splits add what attributes say
only together. With a δ costs add up in ρ, which allows many more queries.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.boosting import BOOSTING
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.ours.auto_rules import random_trees_pay
from dpforest_duckdb.recipes.plans import FEW_TREES, in_rounds
from dpforest_duckdb.recipes.recipe import OURS, Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import at_random


def plan(request: Request) -> Plan:
    """Two sweeps, and all trees if the signal is strong; with a δ and a weak signal one sweep and
    few trees.
    """
    if random_trees_pay(request):
        return in_rounds(request, turns=4, sweeps=2, trees=request.trees, forest=50)
    if not request.rho:
        return in_rounds(request, turns=3, sweeps=2, trees=0)
    few = max(1, request.trees // 4)
    return in_rounds(request, turns=3, sweeps=1, trees=few, forest=FEW_TREES)


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
