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
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.published import by_noisy_counts

LINES = (
    Line("all rows in one tree", "thesis §4.1.1", "rows"),
    Line("one tree", "thesis §4.1.1", "trees"),
    Line("a split has a child per value v of an attribute", "thesis (4.1)", "split_type"),
    Line(
        "Q1 = n_v,c and Q2 = n_v with Laplace noise, of every attribute",
        "thesis (4.2)",
        "choose: by_noisy_counts",
    ),
    Line("the attribute with the smallest (4.1)", "thesis (4.1)", "choose: by_noisy_counts"),
    Line("a query has ε_Q = B / (2dm)", "thesis §4.1.1", "plan: plan"),
    Line(
        "leaves have no queries, as all of B goes to the splits",
        NO_TEXT,
        "plan: plan",
        assumed="they have the counts of their parents' split",
    ),
    Line("the depth", NO_TEXT, "depth", assumed="3 splits, or until no attribute is left"),
    Line(
        "a leaf gives each class its share of the counts",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="shares rather than the label alone: with one tree the label is the same",
    ),
)


def plan(request: Request) -> Plan:
    """All of B for the splits, in equal parts for every depth."""
    counts = ("discrete Laplace on every attribute", (1,) * request.depth)
    return spread(request, {"split": counts})


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
    only="Everything is computed from noisy counts: it is private as published.",
    lines=LINES,
)
