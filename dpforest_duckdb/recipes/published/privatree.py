"""PrivaTree: Vos et al., Differentially-Private Decision Trees and Provable Robustness to Data
Poisoning, 2023; known through its abstract and its authors' code, tudelft-cda-lab/PrivaTree.

One binary tree. A node queries a noisy histogram by class of every attribute and takes the split of
least Gini in them. Labels are drawn by permute-and-flip. The leaves get just enough budget that
flipped labels misclassify at most 1 % of the rows, and at most half of B. The rest goes to the
splits, in equal parts for every depth. The leaves need
ε = 2^d max_p 2 ln(1/p) (1 − (1 − (1 − p)^K) / (K p)) / (n 1 %) for K classes. d = 4.
Assumed: the domain's bins; 0.1 % of B for the leaves at least. Cut: a split separates one category
from the rest. The code orders categories by their share of a class and separates any first ones.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import Plan, counted, drawn
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.leaf_queries import LABEL
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.published.privatree_splits import by_private_histograms
from dpforest_duckdb.recipes.recipe import Adaptation, Recipe, repaired
from dpforest_duckdb.recipes.row_count_queries import NOISY_ROWS, PUBLIC_ROWS, ROWS_SHARE
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.published import unless_few_or_pure
from dpforest_duckdb.splits.utilities import GINI

ERROR = 0.01  # the share of rows that flipped labels may get wrong
LEAST_SHARE = Fraction(1, 1000)  # of the budget, for the leaves, however many rows there are


def leaf_epsilon(request: Request) -> float:
    """What the leaves need for an expected error of at most ERROR, by the number of rows."""
    p, classes = np.arange(1, 1000) / 1000, len(request.domain.classes)
    worst = (2 * np.log(1 / p) * (1 - (1 - (1 - p) ** classes) / (classes * p))).max()
    rows = max(request.rows, 1) / request.rows_per_unit
    return float(2**request.depth * worst / (rows * ERROR))


def leaf_share(request: Request, spent: Fraction = Fraction(0)) -> Fraction:
    """The leaves' part of what is left of B after the part `spent`."""
    needed = Fraction(round(leaf_epsilon(request) * NANO)) / (request.epsilon * (1 - spent))
    return min(max(needed, LEAST_SHARE), Fraction(1, 2))


def plan(request: Request) -> Plan:
    """The rest of B goes to the splits, in equal parts to every depth."""
    leaf, d = leaf_share(request, ROWS_SHARE), request.depth
    splits, ends = (drawn(PERMUTE_AND_FLIP, "Gini"), ((1 - leaf) / d,) * d), (LABEL.answer, (leaf,))
    return spread(request, {Purpose.SPLIT: splits, Purpose.LEAF: ends}, rows=ROWS_SHARE)


def published_plan(request: Request) -> Plan:
    """Each attribute's histogram has the whole share, but only one of them is charged.

    Before the number of rows is known, this bounds the plans that any number of rows leads to.
    """
    leaf, histograms = leaf_share(request), len(request.domain.attributes)
    rest = 1 - leaf if request.rows else Fraction(1)
    split = (rest * histograms / request.depth,) * request.depth
    splits, ends = (counted("every attribute", per_row=0), split), (LABEL.answer, (leaf,))
    return spread(request, {Purpose.SPLIT: splits, Purpose.LEAF: ends}, whole=1)


def adapt(histogram: Integers, request: Request) -> Request:
    """The number of rows, on which the leaves' part depends."""
    return replace(request, rows=max(int(histogram.sum()), 1))


CODE = "its code, privatree.py"
LINES = (
    Line("The tree sees all rows.", CODE, "rows"),
    Line("There is one tree.", CODE, "trees"),
    Line("The depth is 4 in the comparison.", "its code, performance_comparison.py", "depth"),
    Line("Splits are binary.", CODE, "split_type"),
    Line(
        "Numeric attributes get bins by private quantiles, which cost as much as one more depth.",
        CODE,
        "split_type",
        assumed="The domain's bins are used, which cost nothing.",
    ),
    Line(
        "Categories are sorted by their noisy class shares, and any first ones are "
        "split from the rest.",
        CODE,
        "split_type",
        cut="One category is split from the rest.",
    ),
    Line(
        "Every attribute has noisy histograms by class, none below 0. The split of least Gini in "
        "them whose sides both hold rows is taken.",
        CODE,
        "choose: by_private_histograms",
        repaired="One draw is made, by permute-and-flip on Gini weighted by rows, Δ = 2.",
    ),
    Line(
        "A node of one class, or of one row, is not split.",
        CODE,
        "choose: unless_few_or_pure",
        repaired="A node ends by its depth alone, because the true rows and classes are private.",
    ),
    Line(
        "The leaves' part is the least that keeps errors by flipped labels at 1 %, at most ½. The "
        "number of rows is known.",
        CODE,
        "plan: leaf_epsilon",
        repaired="A noisy number of rows costs 4 %. The part is at most half of what is left.",
    ),
    Line("This part has a lower limit.", NO_TEXT, "plan: LEAST_SHARE", assumed="It is 0.1 %."),
    Line(
        "Every depth has an equal part of the rest, charged once for all attributes.",
        CODE,
        "plan: published_plan",
        repaired="Each depth makes one draw, which is what is charged.",
    ),
    Line("That part depends on the number of rows.", CODE, "adaptation: adapt"),
    Line("Labels are drawn by permute-and-flip on class counts.", CODE, "leaf: LABEL"),
    Line("A leaf votes for its label.", CODE, "finish: vote_by_label"),
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
    adaptation=Adaptation(adapt),
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
    choose=by_utility(GINI, PERMUTE_AND_FLIP),
    ends_early=False,
    plan=plan,
)
