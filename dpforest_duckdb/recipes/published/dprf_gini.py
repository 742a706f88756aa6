"""DPRF-Gini: Li & Li et al., 2017; thesis (4.5), (4.6).

CART-like trees on bootstrap samples: candidates are the thresholds of numeric attributes and the
categorical attributes, among √m random ones, drawn by the exponential mechanism on Gini; noisy
counts at the leaves. Budget as in DiffPRF: per level half for a size, half for the split.
Assumed: τ = 20, d = 5; thresholds are public bin edges, where the paper takes the midpoints of
observed neighbours, which are private.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.recipes.published.diffprf import DIFFPRF
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, repaired

assert DIFFPRF.published is not None

_PUBLISHED: Recipe = replace(
    DIFFPRF.published,
    name="dprf-gini",
    title="DPRF-Gini (Li & Li)",
    year=2017,
    paper="A differentially private random forest by Gini index, 2017",
    split_type="mixed",
    flaws=(
        BOOTSTRAP,
        "Midpoints of observed values as candidates are private themselves (public edges here).",
    ),
)

DPRF_GINI = repaired(
    _PUBLISHED,
    ALL_ROWS + " Thresholds are the edges of public bins.",
    rows="all",
    choose=DIFFPRF.choose,
)
