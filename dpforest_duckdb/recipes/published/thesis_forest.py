"""DPRF_thesis: Suihkonen, Differential Privacy applied to Random Forest Classification, MSc thesis,
Helsinki 2023, chapter 5.

As DiPriMe, on √m random attributes a node, with medians among ten equidistant points (5.1), one
category against the rest (5.2), and the label of a leaf by permute-and-flip with B/2; majority.
ε_s = ε_a = B/(4d), so a node with K attributes costs (K + 1)/2 of what is charged; d = m/2.
Assumed: τ = 15, as on Adult; no stopping on true counts; signs as in DiPriMe. Subsets are smaller
than m, no more is said of them: m − 1 in the rigorous form, whose cost does not grow with them.
"""

from __future__ import annotations

import math

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.recipes.leaf_queries import LABEL
from dpforest_duckdb.recipes.plans import (
    FULL_MEDIANS,
    half_to_leaves,
    half_to_leaves_and_full_medians,
)
from dpforest_duckdb.recipes.published.diprime import MSE
from dpforest_duckdb.recipes.recipe import Recipe, half_the_attributes, repaired
from dpforest_duckdb.splits.choose import among, attribute_first
from dpforest_duckdb.splits.published import by_points, full_shares
from dpforest_duckdb.splits.utilities import BALANCE, GINI

_PUBLISHED = Recipe(
    name="thesis-forest",
    title="DPRF_thesis (Suihkonen)",
    year=2023,
    paper="Differential Privacy applied to Random Forest Classification, Helsinki 2023",
    rows="disjoint",
    split_type="binary",
    choose=among(by_points(BALANCE, MSE, full_shares(math.isqrt), points=10)),
    trees=15,
    depth=half_the_attributes,
    plan=half_to_leaves_and_full_medians(LABEL.mechanism, math.isqrt),
    leaf=LABEL,
    finish=each(alone(vote_by_label)),
    flaws=FULL_MEDIANS,
)

THESIS_FOREST = repaired(
    _PUBLISHED,
    "The attribute is drawn first, by its best point, and then one median, for half of the share "
    "each. N MSE is Gini, monotone, and all draws are by permute-and-flip.",
    choose=among(attribute_first(GINI, BALANCE, "permute-and-flip", points=10), lambda m: m - 1),
    plan=half_to_leaves("permute-and-flip", LABEL.mechanism, disjoint=True),
)
