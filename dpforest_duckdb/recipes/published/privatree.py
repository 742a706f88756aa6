"""PrivaTree: Vos et al., Differentially-Private Decision Trees and Provable Robustness to Data
Poisoning, 2023; a peer, which none of the surveys treats.

One binary tree by permute-and-flip on Gini over uniform bins, and permute-and-flip labels. The
leaves have no more than what keeps the error by flipped labels small, at most half of B; the rest
goes to the splits, alike at every level. d = 4.
Assumed: "small" is an expected 1 % of the rows, for the worst chance p of K classes:
ε = 2^d max_p 2 ln(1/p) (1 − (1 − (1 − p)^K) / (K p)) / (n 1 %). Less loses accuracy on small
tables. Gini weighted by rows; bins are the domain's.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.leaf_queries import LABEL
from dpforest_duckdb.recipes.plans import NOISY_ROWS, PUBLIC_ROWS, ROWS_SHARE, spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI

ERROR = 0.01  # the share of rows that flipped labels may get wrong
LEAST_SHARE = Fraction(1, 1000)  # of the budget, for the leaves of however many rows


def leaf_epsilon(request: Request) -> float:
    """What the leaves need for an expected error of at most ERROR, by the number of rows."""
    p, classes = np.arange(1, 1000) / 1000, len(request.domain.classes)
    worst = (2 * np.log(1 / p) * (1 - (1 - (1 - p) ** classes) / (classes * p))).max()
    rows = max(request.rows, 1) / request.rows_per_unit
    return float(2**request.depth * worst / (rows * ERROR))


def plan(request: Request, rows: int | Fraction = ROWS_SHARE) -> Plan:
    leaf = Fraction(round(leaf_epsilon(request) * NANO), request.epsilon)
    leaf = min(max(leaf, LEAST_SHARE), Fraction(1, 2))
    split = ((1 - leaf) / request.depth,) * request.depth
    queries = {"split": ("permute-and-flip on Gini", split), "leaf": (LABEL.mechanism, (leaf,))}
    return spread(request, queries, rows=rows)


def adapt(histogram: Integers, request: Request) -> Request:
    return replace(request, rows=max(int(histogram.sum()), 1))


LINES = (
    Line("all rows", NO_TEXT, "rows", assumed="one tree has them"),
    Line("one tree", NO_TEXT, "trees", assumed="1"),
    Line("the depth", NO_TEXT, "depth", assumed="4"),
    Line("binary splits at uniform bins", NO_TEXT, "split_type", assumed="the domain's bins"),
    Line(
        "permute-and-flip on Gini",
        NO_TEXT,
        "choose: by_utility",
        assumed="Gini weighted by rows, with Δ = 2",
    ),
    Line(
        "a share for the leaves that bounds the error of flipped labels",
        NO_TEXT,
        "plan: leaf_epsilon",
        assumed="1 % of the rows; at least 0.1 % of the budget",
    ),
    Line(
        "the number of rows is known",
        "its leaf budget, which has n in it",
        "plan: plan",
        repaired="a noisy one is paid for",
    ),
    Line("the share follows the number of rows", NO_TEXT, "adapt: adapt", assumed="as above"),
    Line("labels by permute-and-flip", NO_TEXT, "leaf: LABEL", assumed="on class counts"),
    Line("the label of the leaf", NO_TEXT, "finish: vote_by_label", assumed="one vote"),
)

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
    flaws=(PUBLIC_ROWS, "The budget of the leaves depends on it."),
    lines=LINES,
)

PRIVATREE = repaired(
    _PUBLISHED,
    NOISY_ROWS + " The leaves' share depends on that.",
    plan=plan,
)
