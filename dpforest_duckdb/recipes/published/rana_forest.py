"""Rana, Gupta & Venkatesh, Differentially Private Random Forest with High Utility, ICDM 2015.

Bootstrap samples; the numeric split point lies between noisy class means (4.7), the attribute has
the largest information gain among √m, and leaf counts are noised with all of B in every tree. It
protects the variance of an adversary's estimates, by a bound on τ, and is not ε-differentially
private by design: there is no rigorous form.
Assumed: τ = 10, below the bounds of Theorems 3 and 4 at the sizes of the paper; d = 5.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.recipes.plans import LAPLACE, half_to_leaves
from dpforest_duckdb.recipes.recipe import BOOTSTRAP, Recipe
from dpforest_duckdb.splits.choose import among
from dpforest_duckdb.splits.published import by_class_means

RANA_FOREST = Recipe(
    name="rana-forest",
    title="Rana et al.",
    year=2015,
    paper="Differentially Private Random Forest with High Utility, ICDM 2015",
    rows="bootstrap",
    split_type="mixed",
    choose=among(by_class_means),
    trees=10,
    depth=5,
    plan=half_to_leaves("noisy class means, true gain", LAPLACE),
    finish=each(alone(vote_by_majority)),
    flaws=(
        "It relaxes differential privacy by design: only variances of estimates are protected.",
        BOOTSTRAP,
    ),
    only="It is not differentially private by design, so there is nothing to repair.",
)
