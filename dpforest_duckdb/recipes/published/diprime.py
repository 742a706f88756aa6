"""DiPriMe: Consul & Williamson, Differentially Private Median Forests, 2021; thesis (4.14)-(4.16).

Binary trees on disjoint rows. A private median of every attribute (the category that comes nearest
to half the rows), then the attribute by −N·MSE, which for class labels is Gini; half of B for the
leaves' counts, ε_s = ε_a = B/(4d). d = 8, τ = 10.
Assumed: the minus signs that (4.14) to (4.16) lack in print; MSE of one-hot labels, P = 1.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.recipes.plans import (
    FULL_MEDIANS,
    LAPLACE,
    half_to_leaves,
    half_to_leaves_and_full_medians,
)
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.published import by_points, full_shares, halves
from dpforest_duckdb.splits.utilities import BALANCE, GINI

# (4.16): ε_a N MSE / 8, and N MSE of two classes is half of Gini
MSE = replace(GINI, name="MSE as published", sensitivity=16)


def every(attributes: int) -> int:
    """A median of each attribute."""
    return attributes


_PUBLISHED = Recipe(
    name="diprime",
    title="DiPriMe (Consul & Williamson)",
    year=2021,
    paper="Differentially Private Median Forests for Regression and Classification, 2021",
    rows="disjoint",
    split_type="binary",
    choose=by_points(BALANCE, MSE, full_shares(every)),
    trees=10,
    depth=8,
    plan=half_to_leaves_and_full_medians(LAPLACE, every),
    finish=each(alone(vote_by_counts)),
    flaws=FULL_MEDIANS,
)

DIPRIME = repaired(
    _PUBLISHED,
    "The medians of a node share their half of its budget. N MSE is Gini, monotone with "
    "sensitivity 2.",
    choose=by_points(BALANCE, GINI, halves),
    plan=half_to_leaves("exponential mechanism", LAPLACE, disjoint=True),
)
