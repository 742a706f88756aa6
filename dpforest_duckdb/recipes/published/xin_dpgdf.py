"""DPGDF: Xin, Yang, Wang & Huang, Differentially Private Greedy Decision Forest, ICASSP 2019.

Trees on disjoint rows, each with all of B: half for the splits, alike at every layer, with
P(a) ∝ exp(−ε Gini / (2(d − 1) Δ)); half for the labels of the leaves, as published by smooth
sensitivity. d from m/2 to m.
Assumed: d = m/2, τ = 10 ("dynamically adjusted": not by rows here). Leaving out the factor 2 is
right: normalised Gini changes within ½ when a row is added.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.recipes.leaf_queries import LABEL, SMOOTH_FLAWS, SMOOTH_LABEL
from dpforest_duckdb.recipes.plans import half_to_leaves
from dpforest_duckdb.recipes.recipe import Recipe, half_the_attributes, repaired
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.published import by_published
from dpforest_duckdb.splits.utilities import GINI, constant, published_gini

_PUBLISHED = Recipe(
    name="xin-dpgdf",
    title="DPGDF (Xin et al.)",
    year=2019,
    paper="Differentially Private Greedy Decision Forest, ICASSP 2019",
    rows="disjoint",
    split_type="mixed",
    choose=by_published(published_gini, constant(0.5), factor=1),
    trees=10,
    depth=half_the_attributes,
    plan=half_to_leaves("exponential mechanism on Gini", SMOOTH_LABEL.mechanism, disjoint=True),
    leaf=SMOOTH_LABEL,
    finish=each(alone(vote_by_label)),
    flaws=SMOOTH_FLAWS,
)

XIN_DPGDF = repaired(
    _PUBLISHED,
    "Labels are drawn by permute-and-flip on class counts. Splits are drawn by count-weighted "
    "Gini, monotone with sensitivity 2, so they need no factor 2 either and are sharper.",
    choose=by_utility(GINI, "exponential"),
    plan=half_to_leaves("exponential mechanism on Gini", LABEL.mechanism, disjoint=True),
    leaf=LABEL,
)
