"""DPRF_thesis: Suihkonen, Differential Privacy applied to Random Forest Classification, 2023, §5.

Binary trees on disjoint rows. A node has K random attributes. For each, a private median is drawn
among ten equidistant points (5.1), or one category against the rest (5.2). Then the attribute is
drawn by −N·MSE (5.3). Each draw has ε_s = ε_a = B/(4 d_m), so a node costs (K + 1)/2 times what is
charged. A node ends at d_m, with one class, or with fewer than 4 rows. The label of a leaf is drawn
by permute-and-flip with B/2; majority.
Assumed: m/2 is rounded up; K = √m; τ = 15; labels −1 and 1, or 0 and 1 as the variant `zero-one`;
ten points without the ends of the public range; a child of fewer than 4 rows is a leaf.
"""

from __future__ import annotations

import math

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP
from dpforest_duckdb.recipes.conformance import Line
from dpforest_duckdb.recipes.leaf_queries import LABEL
from dpforest_duckdb.recipes.plans import (
    FULL_MEDIANS,
    half_to_leaves,
    half_to_leaves_and_full_medians,
)
from dpforest_duckdb.recipes.published.thesis_splits import at_points
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.choose import Chooser, among, attribute_first
from dpforest_duckdb.splits.published import by_points, full_shares, unless_few_or_pure
from dpforest_duckdb.splits.utilities import BALANCE, GINI, MSE_OF_SIGNED, MSE_OF_ZERO_ONE, Utility

POINTS, LEAST_ROWS = 10, 4


def depth(domain: Domain) -> int:
    """⌈m/2⌉."""
    return (len(domain.attributes) + 1) // 2


def choose(mse: Utility) -> Chooser:
    medians = among(by_points(BALANCE, mse, full_shares(math.isqrt)))
    return unless_few_or_pure(at_points(medians, POINTS), LEAST_ROWS)


LINES = (
    Line("The trees have disjoint random subsets of the rows.", "thesis §5.1", "rows"),
    Line(
        "The forest has 9 trees on Banknote, 6 on Mushroom, 15 on Adult.",
        "thesis Figures 5.1 to 5.3",
        "trees",
        assumed="It has 15 trees on every table, without `--trees`.",
    ),
    Line(
        "d_m = m/2: 7 on Adult, 11 on Mushroom. On Banknote it is 4, for its best accuracy.",
        "thesis §5.1, §5.2 and Table 5.1",
        "depth: depth",
        assumed="It is m/2 on every table, rounded up: 2 on Banknote, without `--depth 4`.",
    ),
    Line(
        "A split has two children; a category is split from the rest.", "thesis (5.2)", "split_type"
    ),
    Line(
        "Each attribute of a subset has a private median.",
        "thesis (5.1)",
        "choose: at_points",
        repaired="The attribute is drawn first, by its best point, then one median.",
    ),
    Line(
        "The median is one of ten equidistant points of the range of a number.",
        "thesis §5.1",
        "bins",
        assumed="They divide the public range, up to a bin above the last edge of the domain.",
    ),
    Line(
        "The size of the subset is below m.",
        "thesis §5.1",
        "choose: among",
        assumed="It is √m in the published form and m − 1 in the rigorous one.",
    ),
    Line(
        "The attribute is drawn by −MSE (mean squared error), with P = 1.",
        "thesis (5.3)",
        "choose: MSE_OF_SIGNED",
        assumed="(5.1) to (5.3) get the minus sign that they lack in print. Labels are −1 and 1, "
        "but 0 and 1 in the variant `zero-one`. More than two classes have Gini.",
        repaired="It is drawn by Gini weighted by rows, by permute-and-flip.",
    ),
    Line(
        "A node ends with one class, or below 4 rows.",
        "thesis §5.1",
        "choose: unless_few_or_pure",
        repaired="A node ends at its depth, or if no point is left.",
    ),
    Line(
        "A node ends when the child would have fewer than 4 rows.",
        "thesis §5.1",
        "choose: LEAST_ROWS",
        assumed="That child is a leaf, as in its code, Forest_434.py. The other child is not.",
        repaired="The number of rows ends no node.",
    ),
    Line(
        "A node ends if |A| = 0.",
        "thesis §5.1",
        "split_type",
        assumed="It ends if no split is left. Its code splits once on a path by a category.",
    ),
    Line(
        "A node ends if its rows are all alike.",
        "thesis §5.1",
        "choose: LEAST_ROWS",
        cut="The counts of single attributes do not show it. Such a node is split down to d_m.",
    ),
    Line(
        "ε_a = ε_s = pB / (2 d_m) each, and ε_l = B/2.",
        "thesis §5.1",
        "plan: half_to_leaves_and_full_medians",
        repaired="A node has two draws, with half of its share each.",
    ),
    Line(
        "The label of a leaf is drawn by permute-and-flip.",
        "thesis §5.1",
        "leaf: LABEL",
        assumed="A class is accepted with probability exp(ε_l (f − max f)), as in its example.",
    ),
    Line("The majority of the trees' votes decides.", "thesis §5.1", "finish: vote_by_label"),
)

_PUBLISHED = Recipe(
    name="thesis-forest",
    title="DPRF_thesis (Suihkonen)",
    year=2023,
    paper="Differential Privacy applied to Random Forest Classification, Helsinki 2023",
    rows="disjoint",
    split_type="binary",
    choose=choose(MSE_OF_SIGNED),
    ends_early=True,
    bins=POINTS + 1,
    trees=15,
    depth=depth,
    plan=half_to_leaves_and_full_medians(LABEL.answer, math.isqrt),
    leaf=LABEL,
    finish=each(alone(vote_by_label)),
    flaws=(*FULL_MEDIANS, "Nodes end by the true number of their rows and classes."),
    variants={"zero-one": {"choose": choose(MSE_OF_ZERO_ONE)}},
    lines=LINES,
)

THESIS_FOREST = repaired(
    _PUBLISHED,
    "The attribute is drawn first, by its best point, and then one median, for half of the share "
    "each, and no true count ends a node. N · MSE is a multiple of Gini, which is monotone, and "
    "all draws are by permute-and-flip.",
    choose=at_points(
        among(attribute_first(GINI, BALANCE, PERMUTE_AND_FLIP), lambda m: m - 1), POINTS
    ),
    ends_early=False,
    plan=half_to_leaves(PERMUTE_AND_FLIP, LABEL.answer),
    variants={"zero-one": {}},  # N MSE of 0 and 1 is Gini too
)
