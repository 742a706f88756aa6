"""boosted: every attribute's log-odds one after the other, then random trees on what is left.

For tables with many rows: what an attribute adds is fitted to what those before it left to learn,
so attributes that repeat each other are not counted twice, and random trees of four splits catch
what they do together. With a δ costs add up in ρ, which lets it ask far more.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.boosting import BOOSTING
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.ours.auto_rules import signal
from dpforest_duckdb.recipes.plans import in_rounds
from dpforest_duckdb.recipes.recipe import OURS, Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import at_random

MANY = 100  # the signal, √classes times, from which a second sweep and all trees are worth it
MANY_PURE = 2100  # the same under pure ε, where costs add up faster


def plan(request: Request) -> Plan:
    """Two sweeps and all trees where the signal is strong, else less; under pure ε one sweep."""
    told = signal(request) * math.sqrt(len(request.domain.classes))  # by all classes together
    if told >= (MANY if request.rho else MANY_PURE):
        return in_rounds(request, turns=4, sweeps=2, trees=request.trees, forest=50)
    if not request.rho:
        return in_rounds(request, turns=3, sweeps=1, trees=0)
    few = max(1, request.trees // 4)
    return in_rounds(request, turns=3, sweeps=1, trees=few, forest=20)


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
    adapt=adapt,
    finish=lambda grown, request, plan: list(grown.trees),
    link="softmax",
    only=OURS,
)
