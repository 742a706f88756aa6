"""SuLQ-based ID3: Blum, Dwork, McSherry & Nissim, PODS 2005; thesis §4.1.1.

Every node queries noisy counts n_v,c and n_v of every attribute, two queries each: ε = B / (2dm).
It is split by the attribute with the smallest (4.1) of these counts, and the counts of that
attribute are its children's histograms. All of it is post-processing of Laplace counts, so nothing
needs repair.
Assumed: which counts leaves have, where trees end, and the depth.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import counted_twice, spread
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.published import by_noisy_counts

LINES = (
    Line("The tree sees all rows.", "thesis §4.1.1", "rows"),
    Line("There is one tree.", "thesis §4.1.1", "trees"),
    Line("A split has a child per value v of an attribute.", "thesis (4.1)", "split_type"),
    Line(
        "Q1 = n_v,c and Q2 = n_v have Laplace noise, for every attribute.",
        "thesis (4.2)",
        "choose: by_noisy_counts",
    ),
    Line(
        "Ratios of noisy counts may be outside of 0 to 1.",
        NO_TEXT,
        "choose: by_noisy_counts",
        assumed="n_v,c is at least 0, n_v at least 1, and n_v,c / n_v at most 1.",
    ),
    Line(
        "The attribute with the highest information gain is chosen.",
        "thesis §3.1.1 and (4.1)",
        "choose: by_noisy_counts",
        assumed="(4.1) is printed as the gain, but is the entropy that is left. So the attribute "
        "with the smallest (4.1) is chosen.",
    ),
    Line("A query has ε_Q = B / (2dm).", "thesis §4.1.1", "plan: plan"),
    Line(
        "Leaves have no queries, because all of B goes to the splits.",
        NO_TEXT,
        "plan: plan",
        assumed="Leaves have the counts of their parents' split.",
    ),
    Line(
        "The tree has a greatest depth.",
        NO_TEXT,
        "depth",
        assumed="It has 3 splits on a path, or fewer if no attribute is left.",
    ),
    Line(
        "A leaf votes.",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="It gives each class its share of the counts. With one tree the label is the "
        "same as by majority.",
    ),
)


def plan(request: Request) -> Plan:
    """All of B for the splits, in equal parts for every depth."""
    counts = (counted_twice("every attribute", request), (1,) * request.depth)
    return spread(request, {Purpose.SPLIT: counts})


SULQ_ID3 = Recipe(
    name="sulq-id3",
    title="SuLQ-based ID3 (Blum et al.)",
    year=2005,
    paper="Practical Privacy: The SuLQ Framework, PODS 2005",
    rows="all",
    split_type="multiway",
    choose=by_noisy_counts(of_all=True),
    trees=1,
    depth=3,
    plan=plan,
    finish=each(alone(vote_by_counts)),
    one_form="Everything is computed from noisy counts: it is private as published.",
    lines=LINES,
)
