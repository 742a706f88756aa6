"""DiffPRF: Patil & Singh, Differential Private Random Forest, ICACCI 2014.

ID3 trees on bootstrap samples: ε' = B/τ, at every level half for a noisy node size and half for the
exponential mechanism among √m random attributes; majority of the leaves' noisy counts.
Assumed: Gini by default (`max` and `ig` are the paper's other two); numeric attributes in the
public domain's bins, not in bins that entropy finds in the rows.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.recipes.plans import LAPLACE, per_node
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, LOSS, Recipe, repaired
from dpforest_duckdb.recipes.stopping import drowned
from dpforest_duckdb.splits.choose import among, by_utility
from dpforest_duckdb.splits.utilities import GINI, INFORMATION_GAIN, MAX_COUNT, with_factor_2

_PUBLISHED = Recipe(
    name="diffprf",
    title="DiffPRF (Patil & Singh)",
    year=2014,
    paper="Differential Private Random Forest, ICACCI 2014",
    rows="bootstrap",
    split_type="multiway",
    choose=among(by_utility(with_factor_2(GINI), "exponential")),
    trees=20,
    depth=5,
    plan=per_node("exponential mechanism", LAPLACE),
    stop=drowned,
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, LOSS),
)

DIFFPRF = repaired(
    _PUBLISHED,
    ALL_ROWS + " Gini is monotone, so the factor 2 is left out.",
    rows="all",
    choose=among(by_utility(GINI, "exponential")),
    variants={
        "max": {"choose": among(by_utility(MAX_COUNT, "exponential"))},
        "ig": {"choose": among(by_utility(INFORMATION_GAIN, "exponential"))},
    },
)
