"""DiffPRFs: Mu, Ding, Song & Lu, random forest under differential privacy, 2016.

Bootstrap samples, √m random attributes a node; a split point of each numeric one is drawn first,
weighted by the width of its interval, then the attribute. ε' = B/τ, ε = ε' / (2(d + 1)); a node
with k numeric attributes divides its split budget by k + 1. Noisy node sizes, noisy counts at the
leaves, majority. τ = 25, d = 3 … 7.
Assumed: the max operator (`ig` is the paper's other utility); points are public bin edges.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.recipes.published.diffprf import DIFFPRF
from dpforest_duckdb.recipes.recipe import ALL_ROWS, Recipe, repaired
from dpforest_duckdb.splits.choose import Chooser, among
from dpforest_duckdb.splits.published import by_points
from dpforest_duckdb.splits.utilities import INFORMATION_GAIN, MAX_COUNT, Utility, with_factor_2

assert DIFFPRF.published is not None


def choose(utility: Utility) -> Chooser:
    return among(by_points(utility, utility, by_width=True))


_PUBLISHED: Recipe = replace(
    DIFFPRF.published,
    name="diffprfs",
    title="DiffPRFs (Mu et al.)",
    year=2016,
    paper="DiffPRFs: random forest under differential privacy, Journal on Communications 2016",
    split_type="mixed",
    choose=choose(with_factor_2(MAX_COUNT)),
    trees=25,
)

DIFFPRFS = repaired(
    _PUBLISHED,
    ALL_ROWS + " The max operator is monotone, so the factor 2 is left out.",
    rows="all",
    choose=choose(MAX_COUNT),
    variants={"ig": {"choose": choose(INFORMATION_GAIN)}},
)
