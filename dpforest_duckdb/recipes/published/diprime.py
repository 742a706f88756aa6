"""DiPriMe: Consul & Williamson, Differentially Private Random Forests for Regression and
Classification, AAAI 2021; known through the thesis.

Binary trees. A private median of every attribute is drawn by the exponential mechanism on the
balance of its sides: over the range of a numeric attribute, in proportion to the interval (4.14),
and over the splits of a categorical one (4.15). Then the attribute is drawn by −N·MSE (4.16).
ε_s = ε_a = pB / (2 d_m); the rest pays for the noisy class counts of the leaves. d_m = 8, τ = 10.
Assumed: p = ½; trees on disjoint rows; the minus signs that (4.14) to (4.16) lack in print; labels
−1 and 1, so that P = 1 bounds them and N·MSE is twice Gini, with 0 and 1, where it is half of Gini,
as the variant `zero-one`; more than two classes by Gini; shares of a leaf's counts are averaged
over the trees. A point of the range stands for one of 250 public intervals, with its width. (4.15)
is cut: not all subsets of categories are tried, but each category against the rest.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import LAPLACE
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import (
    FULL_MEDIANS,
    half_to_leaves,
    half_to_leaves_and_full_medians,
)
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.choose import Chooser
from dpforest_duckdb.splits.published import INTERVALS, by_points, full_shares, halves
from dpforest_duckdb.splits.utilities import BALANCE, GINI, MSE_OF_SIGNED, MSE_OF_ZERO_ONE, Utility


def every(attributes: int) -> int:
    """A median of each attribute."""
    return attributes


def choose(mse: Utility) -> Chooser:
    return by_points(BALANCE, mse, full_shares(every), by_width=True)


LINES = (
    Line(
        "The trees have rows of their own.",
        NO_TEXT,
        "rows",
        assumed="The rows of the trees are disjoint, as in the thesis's own system.",
    ),
    Line("The forest has 10 trees.", "thesis Table 4.1", "trees"),
    Line("The depth is 8.", "thesis Table 4.1", "depth"),
    Line("A split has two children.", "thesis §4.3.2", "split_type"),
    Line(
        "Categories are split by any set, (C, X \\ C).",
        "thesis (4.15)",
        "split_type",
        cut="C is one category. A node cannot be split by a larger set here.",
    ),
    Line(
        "Each attribute has a median, over the reals of its range.",
        "thesis (4.14)",
        "bins: INTERVALS",
        cut="The range has 250 equal intervals, or the bins that the domain names. Every "
        "point of an interval counts as its upper end. The last interval is left out: its end "
        "splits nothing off.",
    ),
    Line(
        "A point is drawn in proportion to the width of the interval in which all "
        "points score alike.",
        "thesis (4.14)",
        "choose: by_points",
        assumed="(4.14) to (4.16) are read with a minus sign, which they lack in print.",
    ),
    Line(
        "The attribute is drawn by −MSE (mean squared error), with Δ = 4P²/N.",
        "thesis (4.16)",
        "choose: MSE_OF_SIGNED",
        repaired="It is drawn by Gini weighted by rows, Δ = 2. That is monotone, so the factor 2 "
        "is left out.",
    ),
    Line(
        "Labels are in [−P, P].",
        "thesis §4.3.2",
        "choose: MSE_OF_SIGNED",
        assumed="They are −1 and 1, and 0 and 1 in the variant `zero-one`. More than two "
        "classes have Gini.",
    ),
    Line(
        "Each query has ε_s = ε_a = pB / (2 d_m).",
        "thesis §4.3.2",
        "plan: half_to_leaves_and_full_medians",
        repaired="The medians of a node share their half.",
    ),
    Line(
        "p is a part of the budget.",
        NO_TEXT,
        "plan: half_to_leaves",
        assumed="p is ½, as in the thesis's own system.",
    ),
    Line(
        "The classes of a leaf get Laplace noise.",
        "thesis §4.4.1 and §5.3",
        "plan: half_to_leaves",
    ),
    Line(
        "The trees vote.",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="The shares of a leaf's counts are averaged over the trees.",
    ),
)

_PUBLISHED = Recipe(
    name="diprime",
    title="DiPriMe (Consul & Williamson)",
    year=2021,
    paper="Differentially Private Random Forests for Regression and Classification, AAAI 2021",
    rows="disjoint",
    split_type="binary",
    bins=INTERVALS,
    choose=choose(MSE_OF_SIGNED),
    trees=10,
    depth=8,
    plan=half_to_leaves_and_full_medians(LAPLACE, every),
    finish=each(alone(vote_by_counts)),
    flaws=FULL_MEDIANS,
    variants={"zero-one": {"choose": choose(MSE_OF_ZERO_ONE)}},
    lines=LINES,
)

DIPRIME = repaired(
    _PUBLISHED,
    "The medians of a node share their half of its budget. N · MSE is a multiple of Gini, which "
    "is monotone with sensitivity 2.",
    choose=by_points(BALANCE, GINI, halves, by_width=True),
    plan=half_to_leaves(EXPONENTIAL, LAPLACE),
    variants={"zero-one": {}},  # N MSE of 0 and 1 is a multiple of Gini too
)
