"""PINQ-based ID3: McSherry, SIGMOD 2009; Friedman & Schuster, KDD 2010; Table 1 of DiffPRFs.

Like SuLQ-based ID3, but the values of an attribute divide the rows into disjoint cells, which cost
only once. At each depth, half pays for a noisy node size; the attributes that are left share the
other half.
Assumed: the budget of a depth, the leaves, when a node ends (DiffP-ID3's rule), and the depth.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import counted_twice, per_node
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.recipes.stopping import children_within_noise
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.published import by_noisy_counts

LINES = (
    Line("The tree sees all rows.", "DiffPRFs §2.3", "rows"),
    Line("There is one tree.", "DiffPRFs §2.3", "trees"),
    Line("Rows are divided by the values of an attribute.", "DiffPRFs Table 1", "split_type"),
    Line(
        "Information gain is computed from noisy counts.",
        "DiffPRFs §2.3",
        "choose: by_noisy_counts",
    ),
    Line(
        "Ratios of noisy counts may be outside of 0 to 1.",
        NO_TEXT,
        "choose: by_noisy_counts",
        assumed="n_v,c is at least 0, n_v at least 1, and n_v,c / n_v at most 1. Half of an "
        "attribute's budget is for n_v,c, half for n_v.",
    ),
    Line(
        "The attribute with the highest information gain is chosen.",
        "thesis §3.1.1 and (4.1)",
        "choose: by_noisy_counts",
        assumed="(4.1) is printed as the gain, but is the entropy that is left. So the attribute "
        "with the smallest (4.1) is chosen.",
    ),
    Line(
        "Disjoint parts of the rows cost their budget once.",
        "DiffPRFs Table 1",
        "plan: per_node",
    ),
    Line(
        "A depth divides its budget.",
        NO_TEXT,
        "plan: per_node",
        assumed="Half is for the size of a node and half for the attributes left. At a leaf "
        "half is for its size and half for its class counts. A depth is one of d + 1.",
    ),
    Line(
        "A node ends if n / (t |C|) < √2 / ε.",
        NO_TEXT,
        "stop: children_within_noise",
        assumed="The rule is DiffP-ID3's, by the same authors.",
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
    """Equal parts for a node's size, its split, and in the end its class counts."""
    return per_node(counted_twice("the attributes left", request))(request)


PINQ_ID3 = Recipe(
    name="pinq-id3",
    title="PINQ-based ID3 (McSherry; Friedman & Schuster)",
    year=2009,
    paper="Privacy Integrated Queries, SIGMOD 2009; Data Mining with Differential Privacy, 2010",
    rows="all",
    split_type="multiway",
    choose=by_noisy_counts(of_all=False),
    trees=1,
    depth=3,
    plan=plan,
    stop=children_within_noise,
    finish=each(alone(vote_by_counts)),
    one_form="Everything is computed from noisy counts: it is private as published.",
    lines=LINES,
)
