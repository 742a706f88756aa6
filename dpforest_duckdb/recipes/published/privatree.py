"""PrivaTree: Vos et al., Differentially-Private Decision Trees and Provable Robustness to Data
Poisoning, 2023; known through its abstract and its authors' code, tudelft-cda-lab/PrivaTree.

One binary tree. A node queries a noisy histogram by class of every attribute and takes the split of
least Gini in them. Labels are drawn by permute-and-flip. The leaves get just enough budget that
flipped labels misclassify at most 1 % of the rows, and at most half of B. The rest goes to the
splits, in equal parts for every depth. The leaves need
ε = 2^d max_p 2 ln(1/p) (1 − (1 − (1 − p)^K) / (K p)) / (n 1 %) for K classes. d = 4.
Assumed: the bins are the domain's. The private form draws by permute-and-flip on Gini weighted by
rows. Cut: a split of categories separates one category from the rest. The code orders categories by
their share of a class and separates any first ones.
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
from dpforest_duckdb.recipes.plans import LAPLACE, NOISY_ROWS, PUBLIC_ROWS, ROWS_SHARE, spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.published import by_private_histograms, unless_few_or_pure
from dpforest_duckdb.splits.utilities import GINI

ERROR = 0.01  # the share of rows that flipped labels may get wrong
LEAST_SHARE = Fraction(1, 1000)  # of the budget, for the leaves of however many rows


def leaf_epsilon(request: Request) -> float:
    """What the leaves need for an expected error of at most ERROR, by the number of rows."""
    p, classes = np.arange(1, 1000) / 1000, len(request.domain.classes)
    worst = (2 * np.log(1 / p) * (1 - (1 - (1 - p) ** classes) / (classes * p))).max()
    rows = max(request.rows, 1) / request.rows_per_unit
    return float(2**request.depth * worst / (rows * ERROR))


def leaf_share(request: Request) -> Fraction:
    """The leaves' part of B."""
    needed = Fraction(round(leaf_epsilon(request) * NANO), request.epsilon)
    return min(max(needed, LEAST_SHARE), Fraction(1, 2))


def plan(request: Request) -> Plan:
    """The rest of B to the splits, alike at every depth."""
    leaf = leaf_share(request)
    split = ((1 - leaf) / request.depth,) * request.depth
    queries = {"split": ("permute-and-flip on Gini", split), "leaf": (LABEL.mechanism, (leaf,))}
    return spread(request, queries, rows=ROWS_SHARE)


def published_plan(request: Request) -> Plan:
    """Each attribute's histogram has the whole share, but only one of them is charged.

    Before the number of rows is known, this is the largest plan that any number of rows leads to.
    """
    leaf, histograms = leaf_share(request), len(request.domain.attributes)
    rest = 1 - leaf if request.rows else Fraction(1)
    split = (rest * histograms / request.depth,) * request.depth
    queries = {
        "split": (f"{LAPLACE} on every attribute", split),
        "leaf": (LABEL.mechanism, (leaf,)),
    }
    return spread(request, queries, whole=1)


def adapt(histogram: Integers, request: Request) -> Request:
    """The number of rows, on which the leaves' part depends."""
    return replace(request, rows=max(int(histogram.sum()), 1))


CODE = "its code, privatree.py"
LINES = (
    Line("all rows", CODE, "rows"),
    Line("one tree", CODE, "trees"),
    Line("depth 4 in the comparison", "its code, performance_comparison.py", "depth"),
    Line("binary splits", CODE, "split_type"),
    Line(
        "bins of numeric attributes by private quantiles, for the share of one depth more",
        CODE,
        "split_type",
        assumed="the domain's bins, which cost nothing",
    ),
    Line(
        "categories in the order of their noisy class shares, any first ones against the rest",
        CODE,
        "split_type",
        cut="one category against the rest",
    ),
    Line(
        "noisy histograms by class of every attribute, and the split of least Gini in them",
        CODE,
        "choose: by_private_histograms",
        repaired="one draw by permute-and-flip on Gini weighted by rows, Δ = 2",
    ),
    Line(
        "a node of one class, or of one row, is not split",
        CODE,
        "choose: unless_few_or_pure",
        repaired="it ends by depth alone: the true rows and classes are private",
    ),
    Line(
        "the leaves' part is the least that keeps errors by flipped labels at 1 %, at most ½",
        CODE,
        "plan: leaf_epsilon",
        repaired="the same of what a noisy number of rows leaves",
    ),
    Line("the least that this part can be", NO_TEXT, "plan: LEAST_SHARE", assumed="0.1 % of B"),
    Line(
        "the rest alike to every depth, charged once for the histograms of all attributes",
        CODE,
        "plan: published_plan",
        repaired="one draw, which is what is charged",
    ),
    Line("that part depends on the number of rows, which is known", CODE, "adapt: adapt"),
    Line("labels by permute-and-flip on class counts", CODE, "leaf: LABEL"),
    Line("the label of the leaf", CODE, "finish: vote_by_label"),
)

_PUBLISHED = Recipe(
    name="privatree",
    title="PrivaTree (Vos et al.)",
    year=2023,
    paper="Differentially-Private Decision Trees and Provable Robustness to Data Poisoning, 2023",
    rows="all",
    split_type="binary",
    choose=unless_few_or_pure(by_private_histograms, 2),
    ends_early=True,
    trees=1,
    depth=4,
    plan=published_plan,
    adapt=adapt,
    leaf=LABEL,
    finish=each(alone(vote_by_label)),
    flaws=(
        PUBLIC_ROWS,
        "The histograms of all attributes of a node are charged as one.",
        "Nodes end by the true number of their rows and classes.",
    ),
    lines=LINES,
)

PRIVATREE = repaired(
    _PUBLISHED,
    NOISY_ROWS + " Splits are drawn by permute-and-flip on Gini, and no true count ends a node.",
    choose=by_utility(GINI, "permute-and-flip"),
    ends_early=False,
    plan=plan,
)
