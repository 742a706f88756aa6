"""DiffGen: Mohammed, Chen, Fung et al., Differentially private data release for data mining,
KDD 2011; known through the account and Table 1 of Mu et al. 2016.

The table is generalised to the top of every taxonomy and interval, then refined h times. A step
draws one entry (a group of a taxonomy, or an interval with its split point) by the exponential
mechanism, and replaces it by its parts in the whole table. In the end half of B pays for counting
every cell by class.
Assumed: each draw has ε' = B / (2(numeric + 2h)): one for the split point of each numeric attribute
at the start, then two for each step, the draw of an entry and the points of new intervals. Without
numeric attributes a step has one draw. h = 6.
Δ = log2 |C|. Points are also drawn by information gain, at the domain's bin edges, weighted by the
width of the bin below. The variant `max`. Taxonomies are the domain's; a column without one has one
group of all categories. A leaf votes by its shares. The rigorous form draws by the max operator.
"""

from __future__ import annotations

from dpforest_duckdb.learners.specialisation import specialised
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import LAPLACE, Plan, drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.utilities import (
    GAIN_OF_RANGE,
    INFORMATION_GAIN,
    MAX_COUNT,
    with_factor_2,
)

IG, MAX = GAIN_OF_RANGE, with_factor_2(MAX_COUNT)


def plan(request: Request) -> Plan:
    """Half of the budget for all draws, in equal parts; half for the leaves."""
    numeric = sum(a.kind == "numeric" for a in request.domain.attributes)
    splits = [2 if numeric else 1] * request.depth
    splits[0] += numeric
    queries = {
        Purpose.SPLIT: (drawn(EXPONENTIAL), splits),
        Purpose.LEAF: (LAPLACE, (sum(splits),)),
    }
    return spread(request, queries)


LINES = (
    Line("The tree sees the whole table.", "DiffPRFs §2.3", "rows"),
    Line("There is one tree, from the root to the leaves.", "DiffPRFs §2.3", "trees"),
    Line("There is a number of specialisations.", NO_TEXT, "depth", assumed="There are 6."),
    Line(
        "Each attribute has a taxonomy tree.",
        "DiffPRFs §2.3",
        "split_type",
        assumed="It is the domain's. An attribute without one is split into its categories at "
        "once.",
    ),
    Line(
        "One entry at a time is specialised, drawn by the exponential mechanism.",
        "DiffPRFs §2.3 and Table 1",
        "learner: specialised",
        repaired="It is drawn by the max operator, which is monotone, so the factor 2 is left out.",
    ),
    Line(
        "The utility is information gain.",
        "DiffPRFs §2.3 and Table 1",
        "learner: IG",
        repaired="The utility is the max operator, Δ = 1. The variant `ig` uses information gain "
        "with Δ = 1 bit, the most that one more row changes it by, and the factor 2.",
    ),
    Line(
        "Information gain has a sensitivity, and there are other utilities.",
        NO_TEXT,
        "learner: MAX",
        assumed="As published its sensitivity is log2 |C|, its range in bits. The variant `max` "
        "has the max operator.",
    ),
    Line(
        "Split points of numbers are drawn.",
        NO_TEXT,
        "learner: specialised",
        assumed="They are drawn by the same utility among the domain's bin edges, each weighted "
        "by the width of the bin below.",
    ),
    Line(
        "The whole table is made finer step by step, without queries at single nodes.",
        "DiffPRFs §2.3 and Table 1",
        "learner: specialised",
        assumed="A step ends early if nothing is left to refine, and its share is not used.",
    ),
    Line(
        "A query has ε' = B / (2(numeric + 2h)), with h specialisations.",
        NO_TEXT,
        "plan: plan",
        assumed="Each numeric attribute has a first point, and each step one draw and new points "
        "(those of the last step are not drawn). Without numeric attributes a step has one draw, "
        "so ε' = B / 2h.",
    ),
    Line("The leaves get Laplace noise.", "DiffPRFs §2.3", "plan: LAPLACE"),
    Line(
        "A leaf votes.",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="It gives each class its share of the counts.",
    ),
)

_PUBLISHED = Recipe(
    name="diffgen",
    title="DiffGen (Mohammed et al.)",
    year=2011,
    paper="Differentially private data release for data mining, KDD 2011",
    rows="all",
    split_type="mixed",
    ends_early=True,  # a step splits one entry of the cut, not every node
    learner=specialised(IG, point=IG),
    trees=1,
    taxonomies=True,
    depth=6,
    plan=plan,
    finish=each(alone(vote_by_counts)),
    variants={
        "ig": {"learner": specialised(IG, point=IG)},
        "max": {"learner": specialised(MAX, point=MAX)},
    },
    lines=LINES,
)

DIFFGEN = repaired(
    _PUBLISHED,
    "It is private as published if every cell is noised, as it is here. Splits are drawn by the "
    "max operator, which is monotone, so that the factor 2 is left out.",
    learner=specialised(MAX_COUNT, point=MAX_COUNT),
    variants={
        "ig": {"learner": specialised(INFORMATION_GAIN, point=INFORMATION_GAIN)},
        "max": {"learner": specialised(MAX_COUNT, point=MAX_COUNT)},
    },
)
