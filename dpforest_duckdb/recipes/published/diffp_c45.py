"""DiffP-C4.5: Friedman & Schuster, Data mining with differential privacy, KDD 2010; known through
the account and Table 1 of Mu et al. 2016.

Like DiffP-ID3, but with numeric attributes. At every split a point of each numeric attribute is
drawn first. Then all of them compete with the discrete attributes in a second draw of the
exponential mechanism.
Assumed: all queries on a path cost the same, with k numeric attributes ε = B / ((2 + k)(δ − 1) +
2). A node has queries for its size, k points and a split; a leaf for its size and class counts. If
a node needs fewer points, its other draws get their share. Points are also drawn by information
gain, weighted by the interval, at public bin edges. Δ = log2 |C|. The variants `gini` and `max`. A
child per category. δ, the stop and C4.5's pruning are as in DiffP-ID3. A leaf votes by its shares.
The rigorous form draws by Gini weighted by rows.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each, with_cells
from dpforest_duckdb.postprocess.pruning import prune_by_error
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import LAPLACE, Plan, drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.recipes.stopping import children_within_noise
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import Chooser
from dpforest_duckdb.splits.published import by_points
from dpforest_duckdb.splits.utilities import (
    GAIN_OF_RANGE,
    GINI,
    INFORMATION_GAIN,
    MAX_COUNT,
    Utility,
    with_factor_2,
)

UTILITIES = {"ig": GAIN_OF_RANGE, "gini": GINI, "max": MAX_COUNT}


def plan(request: Request) -> Plan:
    """A size at every node, k + 1 draws at every split, the class counts of a leaf, all alike."""
    d, k = request.depth, sum(a.kind == "numeric" for a in request.domain.attributes)
    queries = {
        Purpose.SIZE: (LAPLACE, (1,) * (d + 1)),
        Purpose.SPLIT: (drawn(EXPONENTIAL), (k + 1,) * d),
        Purpose.LEAF: (LAPLACE, (1,)),
    }
    return spread(request, queries)


def choose(utility: Utility) -> Chooser:
    return by_points(utility, utility, by_width=True)


LINES = (
    Line("The tree sees all rows.", "DiffPRFs §2.3", "rows"),
    Line("There is one tree.", "DiffPRFs §2.3", "trees"),
    Line(
        "The tree has a greatest depth.",
        NO_TEXT,
        "depth",
        assumed="It has 5 nodes on a path, as in Fletcher & Islam's comparison with DiffP-ID3 "
        "(2015).",
    ),
    Line("Attributes are continuous or discrete.", "DiffPRFs §2.3 and Table 1", "split_type"),
    Line(
        "A split point of each continuous attribute and then the split are drawn by the "
        "exponential mechanism.",
        "DiffPRFs §2.3",
        "choose: by_points",
        repaired="They are drawn by Gini, which is monotone, so the factor 2 is left out.",
    ),
    Line(
        "A split calls the exponential mechanism twice, and each call costs budget.",
        "DiffPRFs §2.3",
        "plan: plan",
        assumed="Every query gets an equal part, and each continuous attribute has one. What a "
        "node does not need goes to its other draws.",
    ),
    Line(
        "Split points are drawn.",
        NO_TEXT,
        "choose: by_points",
        assumed="They are drawn by the same utility among public bin edges, weighted by the "
        "width of the bin.",
    ),
    Line(
        "A split has children.",
        NO_TEXT,
        "split_type",
        assumed="A category has a child of its own, as in ID3, and a number two.",
    ),
    Line("The leaves have noisy class counts.", "thesis §4.1.2: commonly (4.3)", "plan: LAPLACE"),
    Line(
        "The utility is information gain.",
        "DiffPRFs §2.3",
        "choose: GAIN_OF_RANGE",
        repaired="The utility is Gini weighted by rows, Δ = 2. The variant `ig` uses information "
        "gain with Δ = 1 bit, the most that one more row changes it by, and the factor 2.",
    ),
    Line(
        "Information gain has a sensitivity, and there are other utilities.",
        NO_TEXT,
        "choose: GAIN_OF_RANGE",
        assumed="As published its sensitivity is log2 |C|, its range in bits. Other variants are "
        "`gini` and `max`.",
    ),
    Line(
        "A rule ends nodes.",
        NO_TEXT,
        "stop: children_within_noise",
        assumed="It is DiffP-ID3's rule.",
    ),
    Line(
        "The tree is pruned and votes.",
        NO_TEXT,
        "finish: prune_by_error",
        assumed="It is pruned by C4.5's rule at 25 %, on counts summed upward. A leaf gives each "
        "class its share of the counts.",
    ),
)

_PUBLISHED = Recipe(
    name="diffp-c45",
    title="DiffP-C4.5 (Friedman & Schuster)",
    year=2010,
    paper="Data mining with differential privacy, KDD 2010",
    rows="all",
    split_type="mixed",
    choose=choose(GAIN_OF_RANGE),
    trees=1,
    depth=5,
    depth_of_root=1,
    plan=plan,
    stop=children_within_noise,
    finish=each(with_cells(sum_upward), with_cells(prune_by_error), alone(vote_by_counts)),
    variants={name: {"choose": choose(with_factor_2(u))} for name, u in UTILITIES.items()},
    lines=LINES,
)

DIFFP_C45 = repaired(
    _PUBLISHED,
    "It is private as published. Splits are drawn by Gini weighted by rows, which is monotone, so "
    "that the factor 2 is left out.",
    choose=choose(GINI),
    variants={
        name: {"choose": choose(u)} for name, u in {**UTILITIES, "ig": INFORMATION_GAIN}.items()
    },
)
