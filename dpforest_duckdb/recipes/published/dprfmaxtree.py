"""DPRFMaxTree: Zhang, Liu, Li & Wang, 2021; thesis (4.11) to (4.13).

Binary CART trees on bootstrap samples; the exponential mechanism on F_Max among √m random
attributes; B/τ a tree; noisy counts at the leaves. τ = 50.
Assumed: half of a tree's budget for its splits; d = 5; F_Max as ⌊Σ_c n_c · max_v n_vc / n⌋.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.recipes.plans import LAPLACE, half_to_leaves
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, LOSS, Recipe, repaired
from dpforest_duckdb.splits.choose import among, by_utility
from dpforest_duckdb.splits.utilities import WEIGHTED_MAX

_PUBLISHED = Recipe(
    name="dprfmaxtree",
    title="DPRFMaxTree (Zhang et al.)",
    year=2021,
    paper="DPRFMaxTree: differentially private random forest by F_Max, 2021",
    rows="bootstrap",
    split_type="binary",
    choose=among(by_utility(WEIGHTED_MAX, "exponential")),
    trees=50,
    depth=5,
    plan=half_to_leaves("exponential mechanism on F_Max", LAPLACE),
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, LOSS),
)

DPRFMAXTREE = repaired(
    _PUBLISHED,
    ALL_ROWS + " F_Max is rounded down, with sensitivity 1 and the factor 2.",
    rows="all",
)
