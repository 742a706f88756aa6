"""dpRF: Bojarski, Choromanska, Choromanski & LeCun, Differentially- and non-differentially-private
random decision trees, 2015.

Random complete binary trees on all rows, B/τ for the class counts of the leaves. A tree votes for
its majority (dpRFMV), or fractions are averaged and the largest wins (threshold averaging, dpRFTA).
Assumed: τ = 10 for O(log n), so that n is not asked; more than two classes.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts, vote_by_majority
from dpforest_duckdb.recipes.plans import LAPLACE, leaves_only
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.splits.choose import at_random

BOJARSKI_FOREST = Recipe(
    name="bojarski-forest",
    title="dpRF (Bojarski et al.)",
    year=2015,
    paper="Differentially- and non-differentially-private random decision trees, 2015",
    rows="all",
    split_type="binary",
    choose=at_random,
    trees=10,
    depth=8,
    plan=leaves_only(LAPLACE),
    finish=each(alone(vote_by_counts)),
    variants={"majority": {"finish": each(alone(vote_by_majority))}},
    refused={
        "probabilistic": "probabilistic averaging draws a class anew for every row, which SQL that "
        "gives one answer cannot: take the p_ columns of bojarski-forest for odds"
    },
    only="Its proof holds once the number of trees is fixed and does not follow the rows.",
)
