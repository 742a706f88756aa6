"""DiffP-ID3: Friedman & Schuster, Data Mining with Differential Privacy, KDD 2010.

A node asks its noisy size and one draw of the exponential mechanism among the attributes, a leaf
its size and its class counts: ε = B / (2δ), δ the nodes on a path (Fletcher & Islam 2015, §4 and
Table 1). `max` scores by the max operator, `ig` by information gain, and `normalised` by Gini with
Δ = .5, as in the comparison of Fletcher & Islam.
Assumed: the end, the pruning, the utility by default, and Δ of information gain.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each, with_cells
from dpforest_duckdb.postprocess.pruning import prune_by_error
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import LAPLACE, per_node
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.recipes.stopping import drowned
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import (
    GINI,
    INFORMATION_GAIN,
    MAX_COUNT,
    NORMALISED_GINI,
    with_factor_2,
)

LINES = (
    Line("all rows in one tree", "Fletcher & Islam 2015, §4", "rows"),
    Line("one tree", "Fletcher & Islam 2015, §4", "trees"),
    Line("a split has a child per category", "DiffPRFs Table 1", "split_type"),
    Line("δ = 5 nodes on a path", "Fletcher & Islam 2015, §5", "depth"),
    Line("a query has ε = β / (2δ)", "Fletcher & Islam 2015, §4", "plan: per_node"),
    Line(
        "Q1 is a noisy size of a node",
        "Fletcher & Islam 2015, §4",
        "plan: per_node",
    ),
    Line(
        "the size is asked of leaves too, which makes 2δ queries", "Table 1 there", "plan: per_node"
    ),
    Line(
        "the exponential mechanism draws the attribute, ε u / 2Δ",
        "DiffPRFs Table 1",
        "choose: by_utility",
        repaired="Gini weighted by counts and the max operator are monotone, so without the factor "
        "2; `ig` and `normalised` keep it",
    ),
    Line(
        "which utility",
        "Fletcher & Islam 2015, §4: Gini with Δ = .5",
        "choose: NORMALISED_GINI",
        assumed="by default Gini weighted by counts, Δ = 2; Δ = .5 is the variant `normalised`; "
        "`ig` has Δ = log2 |C|",
    ),
    Line(
        "a node ends where n / (t |C|) < √2 / ε, t the largest domain of an attribute left",
        NO_TEXT,
        "stop: drowned",
        assumed="the rule is DiffP-ID3's own; no text here prints it",
    ),
    Line(
        "pruning without class counts at inner nodes",
        "Fletcher & Islam 2015, §4",
        "finish: prune_by_error",
        assumed="C4.5's rule on the leaves' counts summed upward",
    ),
    Line(
        "a leaf gives each class its share of the counts",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="shares rather than the label alone: with one tree the label is the same",
    ),
)

_PUBLISHED = Recipe(
    name="diffp-id3",
    title="DiffP-ID3 (Friedman & Schuster)",
    year=2010,
    paper="Data Mining with Differential Privacy, KDD 2010",
    rows="all",
    split_type="multiway",
    choose=by_utility(with_factor_2(GINI), "exponential"),
    trees=1,
    depth=5,
    depth_of_root=1,
    plan=per_node("exponential mechanism", LAPLACE),
    stop=drowned,
    finish=each(with_cells(sum_upward), with_cells(prune_by_error), alone(vote_by_counts)),
    variants={
        "max": {"choose": by_utility(with_factor_2(MAX_COUNT), "exponential")},
        "ig": {"choose": by_utility(INFORMATION_GAIN, "exponential")},
        "normalised": {"choose": by_utility(NORMALISED_GINI, "exponential")},
    },
    lines=LINES,
)

DIFFP_ID3 = repaired(
    _PUBLISHED,
    "It is private as published. Gini is monotone, so the factor 2 is left out, and splits are "
    "drawn twice as sharply.",
    choose=by_utility(GINI, "exponential"),
    variants={
        "max": {"choose": by_utility(MAX_COUNT, "exponential")},
        "ig": {"choose": by_utility(INFORMATION_GAIN, "exponential")},
        "normalised": {"choose": by_utility(NORMALISED_GINI, "exponential")},
    },
)
