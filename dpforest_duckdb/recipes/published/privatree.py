"""PrivaTree: Vos, Wittekind, Verwer et al., Differentially-Private Decision Trees and Provable
Robustness to Data Poisoning, 2023.

One binary tree by permute-and-flip on Gini over uniform bins, and permute-and-flip labels. The
leaves have no more than what keeps the chance of a flipped label small, at most half of B; the rest
goes to the splits, alike at every level. d = 4.
Assumed: "small" is 1 % at a leaf with an equal part of the rows and a lead of half of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.leaf_queries import LABEL
from dpforest_duckdb.recipes.plans import NOISY_ROWS, PUBLIC_ROWS, ROWS_SHARE, spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI


def plan(request: Request, rows: int | Fraction = ROWS_SHARE) -> Plan:
    lead = max(request.rows, 1) / 2**request.depth / 2 / request.rows_per_unit
    leaf = min(Fraction(1, 2), Fraction(round(math.log(100) / lead * NANO), request.epsilon))
    split = ((1 - leaf) / request.depth,) * request.depth
    queries = {"split": ("permute-and-flip on Gini", split), "leaf": (LABEL.mechanism, (leaf,))}
    return spread(request, queries, rows=rows)


def adapt(histogram: Integers, request: Request) -> Request:
    return replace(request, rows=max(int(histogram.sum()), 1))


_PUBLISHED = Recipe(
    name="privatree",
    title="PrivaTree (Vos et al.)",
    year=2023,
    paper="Differentially-Private Decision Trees and Provable Robustness to Data Poisoning, 2023",
    rows="all",
    split_type="binary",
    choose=by_utility(GINI, "permute-and-flip"),
    trees=1,
    depth=4,
    plan=lambda request: plan(request, 0),
    adapt=adapt,
    leaf=LABEL,
    finish=each(alone(vote_by_label)),
    flaws=(PUBLIC_ROWS, "The budget of the leaves rests on it."),
)

PRIVATREE = repaired(
    _PUBLISHED,
    NOISY_ROWS + " The leaves' share rests on that.",
    plan=plan,
)
