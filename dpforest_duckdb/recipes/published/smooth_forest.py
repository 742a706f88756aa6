"""Fletcher & Islam, Differentially Private Random Decision Forests using Smooth Sensitivity, Expert
Systems with Applications 78, 2017; known through the thesis.

Random trees, so that all of a tree's budget goes to the labels of its leaves: as published by the
exponential mechanism with smooth sensitivity (4.22), in the addendum of 2021 by report one-sided
noisy arg max, which is permute-and-flip. About 100 trees; majority.
Depth: m/2 for discrete attributes, which are used once on a path. With s numeric attributes, it is
the d at which the expected number of unused ones, s((s − 1)/s)^d (4.37), falls below s/2.
Assumed: the two depths are added, of discrete and of numeric attributes; the rule is read as the
first such d, as (4.37) as printed has no least value; disjoint rows; utility 1 of the most frequent
class and 0 of the others, whose smooth sensitivity is e^(−jε) at a lead of j rows; τ = 100. The
authors' code, Smooth_Random_Trees, has such rows, utilities and a sum of depths. But its d is the
first one at which at most s/2 are unused, plus 1, and never above 15.
"""

from __future__ import annotations

from itertools import count

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.leaf_queries import LABEL, SMOOTH_FLAWS, SMOOTH_LABEL
from dpforest_duckdb.recipes.plans import leaves_only
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.choose import at_random


def depth(domain: Domain) -> int:
    """Half of the discrete attributes, and the d that leaves less than half of s numeric ones."""
    s = sum(a.kind == "numeric" for a in domain.attributes)
    discrete = (len(domain.attributes) - s) // 2
    first = next(d for d in count() if s * ((s - 1) / s) ** d < s / 2) if s else 0
    return max(1, discrete + first)


LINES = (
    Line(
        "Trees have samples without replacement.",
        "thesis §5.1",
        "rows",
        assumed="They are disjoint, as in the authors' code, Smooth_Random_Trees.",
    ),
    Line("The forest has 100 trees.", "thesis §4.5.1 and Table 4.1", "trees"),
    Line(
        "The depth is arg min over d of s((s − 1)/s)^d < s/2, for s numeric attributes.",
        "thesis (4.37)",
        "depth: depth",
        assumed="It is the first such d, because there is no least value.",
    ),
    Line(
        "The depth is m/2, which assumes discrete attributes.",
        "thesis §4.5.1",
        "depth: depth",
        assumed="Half of the number of discrete attributes, rounded down, is added to the depth of "
        "the line above.",
    ),
    Line(
        "A split has a number of children.",
        NO_TEXT,
        "split_type",
        assumed="A category has a child of its own, and a number two, at a random bin edge.",
    ),
    Line("A discrete attribute is used once on a path.", "thesis §4.5.1", "split_type"),
    Line("Trees are random.", "thesis §4.2", "choose: at_random"),
    Line(
        "All of the budget is for the leaves.",
        "thesis §4.1.2",
        "plan: leaves_only",
        repaired="It is, with another mechanism.",
    ),
    Line(
        "The most frequent class is drawn by the exponential mechanism with smooth sensitivity.",
        "thesis §4.3.3",
        "leaf: SMOOTH_LABEL",
        repaired="It is drawn by permute-and-flip, which the addendum calls ROSNAM.",
    ),
    Line(
        "A class has a utility.",
        NO_TEXT,
        "leaf: SMOOTH_LABEL",
        assumed="It is 1 for the most frequent class, or for all that are equally frequent, and 0 "
        "for the others. At a lead of j rows its smooth sensitivity is e^(−jε).",
        repaired="It is the number of rows of the class.",
    ),
    Line(
        "The trees vote.",
        NO_TEXT,
        "finish: vote_by_label",
        assumed="The majority of their votes decides.",
    ),
)

_PUBLISHED = Recipe(
    name="smooth-forest",
    title="Smooth-sensitivity forest (Fletcher & Islam)",
    year=2017,
    paper="Differentially Private Random Decision Forests using Smooth Sensitivity, Expert Systems "
    "with Applications 78, 2017",
    rows="disjoint",
    split_type="mixed",
    choose=at_random,
    trees=100,
    depth=depth,
    plan=leaves_only(SMOOTH_LABEL.answer),
    leaf=SMOOTH_LABEL,
    finish=each(alone(vote_by_label)),
    flaws=SMOOTH_FLAWS,
    lines=LINES,
)

SMOOTH_FOREST = repaired(
    _PUBLISHED,
    "Labels are drawn by permute-and-flip on class counts. These are monotone with sensitivity 1, "
    "as in the authors' addendum.",
    plan=leaves_only(LABEL.answer),
    leaf=LABEL,
)
