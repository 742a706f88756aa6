"""DPGDF: Guan, Sun, Shi, Wu & Du, A differentially private greedy decision forest classification
algorithm with high utility, Computers & Security 96, 2020; known through the thesis.

Trees on disjoint rows, each with all of B: ε1 = B/2 for the splits, equal at every layer, and ε2 =
B/2 for the class counts of leaves. Each deeper layer of leaves has more by the cube root of 2
(4.33). As printed, (4.34) has i + 1 in its exponent, so its layers add up to 1.587 ε2. Then
Algorithm 2 removes trees one by one by the error of the rest, and keeps the set with the least
error. d = m/2, τ = 50.
Assumed: m/2 rounded down; Gini weighted by rows, with Δ = 2, as its sensitivity is not given; a
child per category, two for a number; errors are those on the training rows; public bins for the
averages of every five values; majority. Cut: Algorithm 2 runs once, on all trees, not on random
subsets of them.
"""

from __future__ import annotations

from fractions import Fraction

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import LAPLACE, Plan, drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.published.guan_aggregation import BY_DRAWN_ERRORS, BY_TRUE_ERRORS
from dpforest_duckdb.recipes.recipe import Recipe, half_the_attributes, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def cube_roots(depths: int, first: int = 0) -> tuple[Fraction, ...]:
    """2^(first/3), 2^((first+1)/3), …: Guan et al. 2020 (4.34), to nine digits."""
    return tuple(Fraction(round(2 ** ((first + i) / 3) * 10**9), 10**9) for i in range(depths))


def plan(request: Request) -> Plan:
    """ε1 in equal parts; a leaf of layer i = 1 … d has ε2 (1 − ∛2) ∛2^(i+1) / (1 − ∛2^d)."""
    d, total = request.depth, sum(cube_roots(request.depth))
    layers = tuple(part / total for part in cube_roots(d, first=2))
    splits = (drawn(EXPONENTIAL), (Fraction(1, d),) * d)
    queries = {Purpose.SPLIT: splits, Purpose.LEAF_OF_A_LAYER: (LAPLACE, layers)}
    return spread(request, queries, whole=2)


SHARE = Fraction(1, 10)  # of B, for the draws of Algorithm 2


def paid_plan(request: Request) -> Plan:
    """Splits and leaves get half each of B without SHARE, the rounds and the last draw of SHARE."""
    d, rounds = request.depth, request.trees - 1
    rest = 1 - SHARE if rounds else Fraction(1)
    splits, leaves = (drawn(EXPONENTIAL), (rest / 2 / d,) * d), (LAPLACE, (rest / 2,))
    queries = {Purpose.SPLIT: splits, Purpose.LEAF: leaves}
    if rounds:
        draws = (SHARE / 2 / rounds,) * rounds
        queries[Purpose.AGGREGATION] = (drawn(PERMUTE_AND_FLIP, "errors"), (*draws, SHARE / 2))
    return spread(request, queries)


LINES = (
    Line("Rows are sampled without replacement.", "thesis §4.2 and §4.4.1", "rows"),
    Line("The forest has 50 trees.", "thesis Table 4.1", "trees"),
    Line("The depth is m/2.", "thesis Table 4.1", "depth", assumed="m/2 is rounded down."),
    Line(
        "Every 5 sorted values of a number are replaced by their average.",
        "thesis §4.3.1",
        "split_type",
        assumed="Public bins are used, which read no rows.",
    ),
    Line(
        "A split has children.",
        NO_TEXT,
        "split_type",
        assumed="A category has a child of its own, a number two, as in ID3 and C4.5. Each edge "
        "between its bins is a candidate beside the other attributes.",
    ),
    Line(
        "The split is chosen among some attributes.",
        "thesis §4.3.4: usually a random subset",
        "choose: by_utility",
        assumed="It is chosen among all that a node has left.",
    ),
    Line(
        "The exponential mechanism draws splits by Gini, by ε u / 2Δ.",
        "thesis (4.20)",
        "choose: by_utility",
        repaired="The factor 2 is left out, because the utility is monotone.",
    ),
    Line("Gini has a sensitivity.", NO_TEXT, "choose: GINI", assumed="It is 2, weighted by rows."),
    Line(
        "ε1 = ε2 = B/2, and ε1 is divided into equal parts.",
        "thesis §4.4.1",
        "plan: plan",
        repaired="A tenth of B is for Algorithm 2 first.",
    ),
    Line(
        "A leaf of layer i has ε2 (1 − ∛2) ∛2^(i+1) / (1 − ∛2^d).",
        "thesis (4.34)",
        "plan: cube_roots",
        assumed="Layer i is below i splits. All layers are debited: together 1.587 ε2.",
        repaired="Every leaf has all of ε2, because a row lies in one leaf.",
    ),
    Line(
        "Trees are removed one by one, by the error of the rest. The set with the least "
        "error is kept.",
        "thesis, Algorithm 4.2",
        "learner: BY_TRUE_ERRORS",
        repaired="The least errors are drawn by permute-and-flip and paid for.",
    ),
    Line(
        "Aggregation is repeated on random subsets of the trees, to save time.",
        "thesis §4.5.2",
        "learner: BY_TRUE_ERRORS",
        cut="It is done once, on all trees.",
    ),
    Line(
        "Errors are counted on some rows.",
        "thesis, Algorithm 4.2, line 4",
        "learner: BY_TRUE_ERRORS",
        assumed="They are counted on the training rows.",
    ),
    Line(
        "The majority of the trees' votes decides.",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="Each tree has one vote, for the class with most noisy rows.",
    ),
)

_PUBLISHED = Recipe(
    name="guan-dpgdf",
    title="DPGDF (Guan et al.)",
    year=2020,
    paper="A differentially private greedy decision forest classification algorithm with high "
    "utility, Computers & Security 96, 2020",
    rows="disjoint",
    split_type="mixed",
    choose=by_utility(with_factor_2(GINI), EXPONENTIAL),
    trees=50,
    depth=half_the_attributes,
    plan=plan,
    learner=BY_TRUE_ERRORS,
    finish=each(alone(vote_by_majority)),
    flaws=(
        "At depth 1, and no other, the layer of (4.34) costs a row 1.587 times ε2.",
        "Trees are selected by their errors on the true rows, which nothing pays for.",
    ),
    lines=LINES,
)

GUAN_DPGDF = repaired(
    _PUBLISHED,
    "A row lies in one leaf, so a leaf of any layer has all of ε2. A tenth of B pays for "
    "Algorithm 2, which draws the trees to leave out by permute-and-flip on their errors.",
    choose=by_utility(GINI, EXPONENTIAL),
    plan=paid_plan,
    learner=BY_DRAWN_ERRORS,
)
