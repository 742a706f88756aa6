"""DPRF_thesis: Suihkonen, Differential Privacy applied to Random Forest Classification, MSc thesis,
Helsinki 2023, chapter 5.

As DiPriMe, on √m random attributes a node, with medians among ten equidistant points (5.1), one
category against the rest (5.2), and the label of a leaf by permute-and-flip with B/2; majority.
ε_s = ε_a = B/(4d), so a node with K attributes costs (K + 1)/2 of what is charged; d = m/2.
Assumed: τ = 15, as on Adult; no stopping on true counts; signs as in DiPriMe.
"""

from __future__ import annotations

import math

from dpforest_duckdb.budgets import half_to_leaves, spread
from dpforest_duckdb.finishing import alone, each
from dpforest_duckdb.leaves import LABEL
from dpforest_duckdb.privacy.accountant import Plan
from dpforest_duckdb.recipe import Recipe, Request, half_the_attributes, repaired
from dpforest_duckdb.recipes.diprime import MSE
from dpforest_duckdb.splits.choose import among, by_points, halves
from dpforest_duckdb.splits.utilities import BALANCE, GINI
from dpforest_duckdb.voting import vote_by_label


def as_published(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """ε_s for each of K = √m medians and ε_a, of a budget for all of them."""
    return (epsilon // (math.isqrt(attributes) + 1),) * 2


def published_plan(request: Request) -> Plan:
    depth, each_ = request.depth, math.isqrt(len(request.domain.attributes)) + 1
    queries = {
        "split": ("exponential mechanism", (each_,) * depth),
        "leaf": (LABEL.mechanism, (2 * depth,)),
    }
    return spread(request, queries, disjoint=True, whole=4 * depth)


_PUBLISHED = Recipe(
    name="thesis-forest",
    title="DPRF_thesis (Suihkonen)",
    year=2023,
    paper="Differential Privacy applied to Random Forest Classification, Helsinki 2023",
    rows="disjoint",
    ways="binary",
    choose=among(by_points(BALANCE, MSE, as_published, points=10)),
    trees=15,
    depth=half_the_attributes,
    plan=published_plan,
    leaf=LABEL,
    finish=each(alone(vote_by_label)),
    flaws=("Every median of a node is given the full share of all of them.",),
)

THESIS_FOREST = repaired(
    _PUBLISHED,
    "The medians of a node share their half of its budget; N MSE is Gini, monotone.",
    choose=among(by_points(BALANCE, GINI, halves, points=10)),
    plan=half_to_leaves("exponential mechanism", LABEL.mechanism, disjoint=True),
)
