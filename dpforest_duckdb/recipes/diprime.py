"""DiPriMe: Consul & Williamson, Differentially Private Median Forests, 2021; thesis (4.14)-(4.16).

Binary trees on disjoint rows. A private median of every attribute (the category that comes nearest
to half the rows), then the attribute by −N·MSE, which for class labels is Gini; half of B for the
leaves' counts, ε_s = ε_a = B/(4d). d = 8, τ = 10.
Assumed: the minus signs that (4.14) to (4.16) lack in print; MSE of one-hot labels, P = 1.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.budgets import LAPLACE, half_to_leaves, spread
from dpforest_duckdb.finishing import alone, each
from dpforest_duckdb.privacy.accountant import Plan
from dpforest_duckdb.recipe import Recipe, Request, repaired
from dpforest_duckdb.splits.choose import by_points, halves
from dpforest_duckdb.splits.utilities import BALANCE, GINI
from dpforest_duckdb.voting import vote_by_counts

# (4.16): ε_a N MSE / 8, and N MSE of two classes is half of Gini
MSE = replace(GINI, name="MSE as published", sensitivity=16)


def as_published(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """ε_s for each of K medians and ε_a, of a budget for all of them."""
    return epsilon // (attributes + 1), epsilon // (attributes + 1)


def published_plan(request: Request) -> Plan:
    """ε_s for each of a node's m medians, ε_a for the attribute: (m + 1)/2 of what is charged."""
    depth, each_ = request.depth, len(request.domain.attributes) + 1
    return spread(
        request,
        {"split": ("exponential mechanism", (each_,) * depth), "leaf": (LAPLACE, (2 * depth,))},
        disjoint=True,
        whole=4 * depth,
    )


_PUBLISHED = Recipe(
    name="diprime",
    title="DiPriMe (Consul & Williamson)",
    year=2021,
    paper="Differentially Private Median Forests for Regression and Classification, 2021",
    rows="disjoint",
    ways="binary",
    choose=by_points(BALANCE, MSE, as_published),
    trees=10,
    depth=8,
    plan=published_plan,
    finish=each(alone(vote_by_counts)),
    flaws=("Every median of a node is given the full share of all of them.",),
)

DIPRIME = repaired(
    _PUBLISHED,
    "The medians of a node share their half of its budget; N MSE is Gini, monotone with "
    "sensitivity 2.",
    choose=by_points(BALANCE, GINI, halves),
    plan=half_to_leaves("exponential mechanism", LAPLACE, disjoint=True),
)
