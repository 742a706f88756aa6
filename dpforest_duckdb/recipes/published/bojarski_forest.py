"""dpRF: Bojarski, Choromanska, Choromanski & LeCun, Differentially- and non-differentially-private
random decision trees, arXiv:1410.6973, 2015; known through the thesis.

Random complete binary trees of a fixed depth, on all rows. The attribute of a node is drawn
uniformly. Each tree has B/τ for the class counts of its leaves. A tree votes for its majority
(dpRFMV), or fractions are averaged and the largest wins (threshold averaging, dpRFTA). The figures
of the paper have depths 6 and 14.
Assumed: τ = 10 instead of O(log n), so that n needs no query; a uniform split of the attribute;
depth 6, with 14 as the variant `deep`, which the limit of leaves cuts to 13 if there are ten trees;
more than two classes; threshold averaging as the default.
Cut: probabilistic averaging, which draws a class for every row.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts, vote_by_majority
from dpforest_duckdb.privacy.plan import LAPLACE
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import leaves_only
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.splits.choose import at_random

LINES = (
    Line("Every tree sees all rows.", "thesis §4.4.1: ε = B/t", "rows"),
    Line(
        "The forest has O(log n) trees.",
        "thesis §4.5.1",
        "trees",
        assumed="The forest has 10 trees, so that n needs no query.",
    ),
    Line(
        "Trees are complete, of a fixed depth: 14 in the table, 6 and 14 in the figures.",
        "thesis §4.5.1, Table 4.1 and Figure 4.4",
        "depth",
        assumed="The depth is 6, because ten trees of depth 14 exceed the limit of leaves. The "
        "variant `deep` has 14 with up to six trees, and 13 with ten.",
    ),
    Line("Trees are binary.", "thesis §4.5.1", "split_type"),
    Line(
        "The attribute is drawn uniformly at each node.",
        "thesis §4.2",
        "choose: at_random",
    ),
    Line(
        "An attribute may have several splits.",
        NO_TEXT,
        "choose: at_random",
        assumed="One of them is drawn uniformly.",
    ),
    Line("The statistics of the leaves get Laplace noise.", "thesis §4.5.1", "plan: leaves_only"),
    Line(
        "Threshold averaging: fractions are averaged over the trees.",
        "thesis §4.5.1",
        "finish: vote_by_counts",
    ),
    Line(
        "Probabilistic averaging: a class is drawn for every row by its fraction.",
        "thesis §4.5.1",
        "finish: vote_by_counts",
        cut="SQL that gives a row one answer cannot draw. The p_ columns have the fractions.",
    ),
    Line(
        "Majority voting, as the variant `majority`.", "thesis §4.5.1", "finish: vote_by_majority"
    ),
    Line(
        "One of the three ways of voting is the main one.",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="It is threshold averaging, whose fractions are the p_ columns.",
    ),
    Line(
        "The class labels are binary.",
        "thesis §4.5.1",
        "finish: vote_by_counts",
        assumed="There may be more classes. The one with the largest mean fraction wins.",
    ),
)

BOJARSKI_FOREST = Recipe(
    name="bojarski-forest",
    title="dpRF (Bojarski et al.)",
    year=2015,
    paper="Differentially- and non-differentially-private random decision trees, "
    "arXiv:1410.6973, 2015",
    rows="all",
    split_type="binary",
    choose=at_random,
    trees=10,
    depth=6,
    plan=leaves_only(LAPLACE),
    finish=each(alone(vote_by_counts)),
    variants={
        "majority": {"finish": each(alone(vote_by_majority))},
        "deep": {"depth": 14},
        "deep-majority": {"depth": 14, "finish": each(alone(vote_by_majority))},
    },
    refused={
        "probabilistic": "probabilistic averaging draws a class at random for every row, which SQL "
        "that gives one answer cannot: take the p_ columns of bojarski-forest for odds"
    },
    one_form="Its proof holds once the number of trees is fixed and does not follow the rows.",
    lines=LINES,
)
