"""DiffP-ID3: Friedman & Schuster, Data Mining with Differential Privacy, KDD 2010.

A node has two queries: its noisy size, and a draw of one attribute by the exponential mechanism. A
leaf has two as well: its size and its class counts. So ε = B / (2δ), with δ nodes on a path
(Fletcher & Islam 2015, §4 and Table 1). The utility is information gain, because the system is ID3
(Mu et al. 2016, §2.3). The variant `normalised` uses Gini with Δ = .5, as Fletcher & Islam describe
the system; `gini` uses Gini weighted by counts, and `max` the max operator.
Assumed: when a node ends, the pruning, the vote by shares, Δ = log2 |C| of information gain, and
the variants `gini` and `max`. The private form draws by Gini weighted by counts.
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
        "the size of leaves is queried too, which makes 2δ queries",
        "Table 1 there",
        "plan: per_node",
    ),
    Line(
        "the exponential mechanism draws the attribute, ε u / 2Δ",
        "DiffPRFs Table 1",
        "choose: by_utility",
        repaired="the same; Gini weighted by counts and the max operator are monotone, so without "
        "the factor 2",
    ),
    Line(
        "ID3 by information gain",
        "DiffPRFs §2.3, thesis §3.1.2",
        "choose: INFORMATION_GAIN",
        repaired="Gini weighted by counts, Δ = 2: no bound on information gain is below its range",
    ),
    Line(
        "Gini with Δ = .5, as another text has it",
        "Fletcher & Islam 2015, §4",
        "choose: NORMALISED_GINI",
        assumed="only the variant `normalised` uses it, because ID3 uses information gain",
    ),
    Line(
        "Δ of information gain",
        NO_TEXT,
        "choose: INFORMATION_GAIN",
        assumed="log2 |C|, its range in bits, as DiffPRFs has it for its own",
    ),
    Line(
        "other utilities",
        NO_TEXT,
        "choose: MAX_COUNT",
        assumed="the variants `gini`, weighted by counts with Δ = 2, and `max` with Δ = 1",
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
    choose=by_utility(INFORMATION_GAIN, "exponential"),
    trees=1,
    depth=5,
    depth_of_root=1,
    plan=per_node("exponential mechanism", LAPLACE),
    stop=drowned,
    finish=each(with_cells(sum_upward), with_cells(prune_by_error), alone(vote_by_counts)),
    variants={
        "ig": {"choose": by_utility(INFORMATION_GAIN, "exponential")},
        "normalised": {"choose": by_utility(NORMALISED_GINI, "exponential")},
        "gini": {"choose": by_utility(with_factor_2(GINI), "exponential")},
        "max": {"choose": by_utility(with_factor_2(MAX_COUNT), "exponential")},
    },
    lines=LINES,
)

DIFFP_ID3 = repaired(
    _PUBLISHED,
    "It is private as published. Splits are drawn by Gini weighted by counts, which is monotone, "
    "so that the factor 2 is left out.",
    choose=by_utility(GINI, "exponential"),
    variants={
        "ig": {"choose": by_utility(INFORMATION_GAIN, "exponential")},
        "normalised": {"choose": by_utility(NORMALISED_GINI, "exponential")},
        "gini": {"choose": by_utility(GINI, "exponential")},
        "max": {"choose": by_utility(MAX_COUNT, "exponential")},
    },
)
