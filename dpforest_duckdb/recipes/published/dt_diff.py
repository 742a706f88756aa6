"""DT-Diff: Zhu, Xiong, Xiang et al., An effective differentially private data releasing algorithm
for decision tree, TrustCom 2013; known through the account and Table 1 of Mu et al. 2016.

The table is generalised to the top, then refined step by step, as in DiffGen. But a step is one
draw: the splits of numeric intervals carry weights and compete with the categorical ones in one
exponential mechanism. In the end every cell is counted by class.
Assumed: the weights, by which all points of an interval together weigh as much as a group of a
taxonomy; half of B for h = 6 draws, half for the counts; Δ = log2 |C|; the variant `max`; points
are the domain's bin edges. Taxonomies are the domain's; a column without one has one group of all
categories. A leaf votes by its shares. The rigorous form draws by the max operator.
"""

from __future__ import annotations

from dpforest_duckdb.learners.specialisation import specialised
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import LAPLACE
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import half_to_leaves
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.utilities import (
    GAIN_OF_RANGE,
    INFORMATION_GAIN,
    MAX_COUNT,
    with_factor_2,
)

LINES = (
    Line("The tree sees the whole table.", "DiffPRFs §2.3", "rows"),
    Line("There is one tree, from the root to the leaves.", "DiffPRFs §2.3", "trees"),
    Line("There is a number of specialisations.", NO_TEXT, "depth", assumed="There are 6."),
    Line(
        "Attributes are generalised to the top, then made finer.",
        "DiffPRFs §2.3",
        "split_type",
        assumed="The domain's taxonomies are used.",
    ),
    Line(
        "Weighted splits of numbers compete with the others in one draw.",
        "DiffPRFs §2.3 and Table 1",
        "learner: specialised",
        repaired="They are drawn by the max operator, which is monotone, so the factor 2 is left "
        "out.",
    ),
    Line(
        "The splits of numbers have weights.",
        NO_TEXT,
        "learner: specialised",
        assumed="The points of an interval together weigh as much as a group of categories.",
    ),
    Line(
        "The utility is information gain.",
        "DiffPRFs §2.3",
        "learner: GAIN_OF_RANGE",
        repaired="The utility is the max operator, Δ = 1. The variant `ig` uses information gain "
        "with Δ = 1 bit, the most that one more row changes it by, and the factor 2.",
    ),
    Line(
        "Information gain has a sensitivity, and there are other utilities.",
        NO_TEXT,
        "learner: MAX_COUNT",
        assumed="As published its sensitivity is log2 |C|, its range in bits. The variant `max` "
        "has the max operator.",
    ),
    Line(
        "Numbers have split points.",
        NO_TEXT,
        "learner: specialised",
        assumed="They are the domain's bin edges.",
    ),
    Line(
        "The whole table is made finer step by step, without queries at single nodes.",
        "DiffPRFs §2.3 and Table 1",
        "learner: specialised",
        assumed="A step ends early if nothing is left to refine, and its share is not used.",
    ),
    Line(
        "The budget is divided.",
        NO_TEXT,
        "plan: half_to_leaves",
        assumed="Half is for the draws and half for the leaves.",
    ),
    Line("The leaves have noisy counts.", "DiffPRFs Table 1: Laplace mechanism", "plan: LAPLACE"),
    Line(
        "A leaf votes.",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="It gives each class its share of the counts.",
    ),
)

_PUBLISHED = Recipe(
    name="dt-diff",
    title="DT-Diff (Zhu et al.)",
    year=2013,
    paper="An effective differentially private data releasing algorithm for decision tree, "
    "TrustCom 2013",
    rows="all",
    split_type="mixed",
    ends_early=True,  # a step splits one entry of the cut, not every node
    learner=specialised(GAIN_OF_RANGE, point=None),
    trees=1,
    taxonomies=True,
    depth=6,
    plan=half_to_leaves(EXPONENTIAL, LAPLACE),
    finish=each(alone(vote_by_counts)),
    variants={
        "ig": {"learner": specialised(GAIN_OF_RANGE, point=None)},
        "max": {"learner": specialised(with_factor_2(MAX_COUNT), point=None)},
    },
    lines=LINES,
)

DT_DIFF = repaired(
    _PUBLISHED,
    "It is private as published if every cell is noised, as it is here. Splits are drawn by the "
    "max operator, which is monotone, so that the factor 2 is left out.",
    learner=specialised(MAX_COUNT, point=None),
    variants={
        "ig": {"learner": specialised(INFORMATION_GAIN, point=None)},
        "max": {"learner": specialised(MAX_COUNT, point=None)},
    },
)
