"""DiffPRFs: Mu, Ding, Song & Lu, random forest under differential privacy, 2016.

Bootstrap samples, √m random attributes per node. A split point of each numeric attribute is drawn
first, weighted by the width of its interval, then the attribute. ε' = B/τ, ε = ε' / (2(d + 1)); a
node with n numeric attributes divides its split budget by n + 1. τ = 25, d = 3 … 7. A node ends at
the greatest depth, or if its rows are of one class. The utility is information gain, or the max
operator. In the rigorous form it is the latter, and no node has a query for its size or class.
Assumed: Δ = log2 |C|, public intervals, a last draw among the √m, a child per category, a majority.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.recipes.conformance import Line
from dpforest_duckdb.recipes.plans import one_per_depth, per_node
from dpforest_duckdb.recipes.recipe import BOOTSTRAP, Recipe, repaired
from dpforest_duckdb.splits.choose import Chooser, among
from dpforest_duckdb.splits.published import INTERVALS, by_points, unless_pure
from dpforest_duckdb.splits.utilities import (
    GAIN_OF_RANGE,
    INFORMATION_GAIN,
    MAX_COUNT,
    Utility,
    with_factor_2,
)


def choose(utility: Utility) -> Chooser:
    """Draw √m attributes, a point of each numeric one of them by width, then one of the √m."""
    return among(by_points(utility, utility, by_width=True))


LINES = (
    Line(
        "Each tree has a bootstrap sample of |S| rows.",
        "§3.1, line 3",
        "rows",
        repaired="Every tree sees all rows once.",
    ),
    Line("The forest has t = 25 trees.", "§4.2", "trees"),
    Line("The depth is 5; the experiments have 3 to 7.", "§4.2", "depth"),
    Line(
        "ε' = B / t per tree, ε = ε' / (2(d + 1)) per query: at each depth a noisy size, and the "
        "split or the leaf.",
        "§3.1, lines 1 and 4, §3.2 and §3.3",
        "plan: per_node",
        repaired="Nothing uses the size, so the split or the leaf has ε' / (d + 1).",
    ),
    Line("Each node has f = √|F| random attributes.", "§3.1, line 8, and §3.2", "choose: among"),
    Line(
        "If n of them are numeric, the ε of the split is divided by n + 1.",
        "§3.1, line 10",
        "choose: by_points",
        assumed="n counts those that have more than one point left. The others need no draw. Line "
        "12 hands the divided ε down; here each depth has the ε of §3.3 again.",
    ),
    Line(
        "Each numeric attribute has a point, drawn with probability ∝ |R_i| exp(ε q / 2Δ).",
        "§3.1, line 10",
        "choose: by_points",
        repaired="The factor 2 is left out, because the max operator is monotone.",
    ),
    Line(
        "R_i are the intervals in which all points score alike.",
        "§3.1, line 10",
        "bins: INTERVALS",
        assumed="R_i are 250 equal intervals of the public range, or the bins that the domain "
        "names, without the last one, whose points split nothing off. The paper's intervals follow "
        "from private values.",
    ),
    Line(
        "Then one of the f attributes is drawn by the exponential mechanism.",
        "§3.1, line 11, and §3.3",
        "choose: by_points",
        repaired="The factor 2 is left out.",
    ),
    Line(
        "These lines draw it among all attributes, the formula among the f.",
        "§3.1, line 11, and §3.3",
        "choose: among",
        assumed="It is drawn among the f, because line 8 has no other use.",
    ),
    Line(
        "q is information gain.",
        "§3.2, items 1 and 3",
        "choose: GAIN_OF_RANGE",
        repaired="q is the max operator. The variant `ig` has Δ = 1 bit, its sensitivity, and the "
        "factor 2.",
    ),
    Line(
        "Δ is ln |C| in step 1. Where q is defined it is lb |C|, which is 1 for two classes.",
        "§3.2, items 1 and 3",
        "choose: GAIN_OF_RANGE",
        assumed="As published Δ is lb |C|, the range of the gain in bits.",
    ),
    Line(
        "Or q is the max operator, with Δ = 1.",
        "§3.2, items 1 and 3",
        "choose: MAX_COUNT",
        assumed="This is the variant `max`.",
    ),
    Line(
        "A node ends at depth d, when B is used up, or when its rows are of one class.",
        "§3.1, input",
        "choose: unless_pure",
        repaired="No node ends by its class, because the classes of the true rows are private.",
    ),
    Line(
        "The rows of a node are divided by the value of the attribute, into 2 children.",
        "§3.1, line 12",
        "split_type",
        assumed="A category has a child of its own, as in the paper's Partition, a number 2.",
    ),
    Line(
        "A leaf is labelled max_c N_c of noisy counts.", "§3.1, line 7", "finish: vote_by_majority"
    ),
    Line(
        "The majority decides, explained as the class of the largest sum of probabilities.",
        "§3.1, classification, line 5",
        "finish: vote_by_majority",
        assumed="The forest predicts the class that most trees predict.",
    ),
)

_PUBLISHED = Recipe(
    name="diffprfs",
    title="DiffPRFs (Mu et al.)",
    year=2016,
    paper="DiffPRFs: random forest under differential privacy, 2016",
    rows="bootstrap",
    split_type="mixed",
    bins=INTERVALS,
    choose=unless_pure(choose(GAIN_OF_RANGE)),
    ends_early=True,
    trees=25,
    depth=5,
    plan=per_node(drawn(EXPONENTIAL)),
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, "Whether the rows of a node are of one class is read from the true rows."),
    variants={
        "ig": {"choose": unless_pure(choose(GAIN_OF_RANGE))},
        "max": {"choose": unless_pure(choose(with_factor_2(MAX_COUNT)))},
    },
    lines=LINES,
)

DIFFPRFS = repaired(
    _PUBLISHED,
    "Every tree sees all rows once, no node ends by its class, and no size is asked for. Splits "
    "are drawn by the max operator, which is monotone, so that the factor 2 is left out.",
    rows="all",
    plan=one_per_depth,
    choose=choose(MAX_COUNT),
    ends_early=False,
    variants={"ig": {"choose": choose(INFORMATION_GAIN)}, "max": {"choose": choose(MAX_COUNT)}},
)
