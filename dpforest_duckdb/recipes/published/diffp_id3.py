"""DiffP-ID3: Friedman & Schuster, Data Mining with Differential Privacy, KDD 2010.

A node has two queries: its noisy size, and a draw of one attribute by the exponential mechanism. A
leaf has two as well: its size and its class counts. So ε = B / (2δ), with δ nodes on a path
(Fletcher & Islam 2015, §4 and Table 1). With d = δ − 1 splits that is the B / (2(d + 1)) of the
original. The utility is information gain, because the system is ID3 (Mu et al. 2016, §2.3). The
variant `normalised` uses Gini with Δ = .5, as Fletcher & Islam describe the system; `gini` uses
Gini weighted by counts, and `max` the max operator.
Assumed: when a node ends, the pruning, the vote by shares, Δ = log2 |C| of information gain, and
the variants `gini` and `max`. The rigorous form draws by Gini weighted by counts.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each, with_cells
from dpforest_duckdb.postprocess.pruning import prune_by_error
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import per_node
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.recipes.stopping import children_within_noise
from dpforest_duckdb.splits.choose import Chooser, by_utility
from dpforest_duckdb.splits.utilities import (
    GAIN_OF_RANGE,
    GINI,
    INFORMATION_GAIN,
    MAX_COUNT,
    NORMALISED_GINI,
    Utility,
    with_factor_2,
)

UTILITIES = {"ig": GAIN_OF_RANGE, "normalised": NORMALISED_GINI, "gini": GINI, "max": MAX_COUNT}


def choose(utility: Utility) -> Chooser:
    return by_utility(utility, EXPONENTIAL)


LINES = (
    Line("The tree sees all rows.", "Fletcher & Islam 2015, §4", "rows"),
    Line("There is one tree.", "Fletcher & Islam 2015, §4", "trees"),
    Line(
        "A split has a child per category, as in DPDF.",
        "Fletcher & Islam 2015, §4",
        "split_type",
    ),
    Line("A path has δ = 5 nodes.", "Fletcher & Islam 2015, §5", "depth"),
    Line("A query has ε = β / (2δ).", "Fletcher & Islam 2015, §4", "plan: per_node"),
    Line(
        "Q1 is a noisy size of a node.",
        "Fletcher & Islam 2015, §4",
        "plan: per_node",
    ),
    Line(
        "There are 2δ queries on a path.",
        "Fletcher & Islam 2015, §4 and Table 1",
        "plan: per_node",
        assumed="The size of leaves is queried too, which makes 2δ.",
    ),
    Line(
        "The original counts d splits on a path: ε = B / (2(d + 1)).",
        NO_TEXT,
        "plan: per_node",
        assumed="It is the same with δ = d + 1 nodes. So `--depth 6` is the original's d = 5.",
    ),
    Line(
        "The exponential mechanism draws the attribute by ε u / 2Δ.",
        "DiffPRFs Table 1 and Theorem 2",
        "choose: by_utility",
        repaired="It leaves out the factor 2, because Gini weighted by counts and the max "
        "operator are monotone.",
    ),
    Line(
        "ID3 uses information gain.",
        "DiffPRFs §2.3, thesis §3.1.2",
        "choose: GAIN_OF_RANGE",
        repaired="It uses Gini weighted by counts, Δ = 2. The variant `ig` uses information gain "
        "with Δ = 1 bit, the most that one more row changes it by, and the factor 2.",
    ),
    Line(
        "Another text uses Gini with Δ = .5.",
        "Fletcher & Islam 2015, §4",
        "choose: NORMALISED_GINI",
        assumed="Only the variant `normalised` uses it, because ID3 uses information gain.",
    ),
    Line(
        "Information gain has a sensitivity.",
        NO_TEXT,
        "choose: GAIN_OF_RANGE",
        assumed="As published it is log2 |C|, its range in bits, as DiffPRFs has it for its own.",
    ),
    Line(
        "There are other utilities.",
        NO_TEXT,
        "choose: MAX_COUNT",
        assumed="The variants are `gini`, weighted by counts with Δ = 2, and `max` with Δ = 1.",
    ),
    Line(
        "A node ends if n / (t |C|) < √2 / ε, where t is the largest domain of an attribute left.",
        NO_TEXT,
        "stop: children_within_noise",
        assumed="The rule is DiffP-ID3's own, but no text that was read prints it.",
    ),
    Line(
        "The tree is pruned without class counts at inner nodes.",
        "Fletcher & Islam 2015, §4",
        "finish: prune_by_error",
        assumed="It is pruned by C4.5's rule at 25 %, on the leaves' counts summed upward.",
    ),
    Line(
        "A leaf votes.",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="It gives each class its share of the counts. With one tree the label is the "
        "same as by majority.",
    ),
)

_PUBLISHED = Recipe(
    name="diffp-id3",
    title="DiffP-ID3 (Friedman & Schuster)",
    year=2010,
    paper="Data Mining with Differential Privacy, KDD 2010",
    rows="all",
    split_type="multiway",
    choose=choose(GAIN_OF_RANGE),
    trees=1,
    depth=5,
    depth_of_root=1,
    plan=per_node(drawn(EXPONENTIAL)),
    stop=children_within_noise,
    finish=each(with_cells(sum_upward), with_cells(prune_by_error), alone(vote_by_counts)),
    variants={name: {"choose": choose(with_factor_2(u))} for name, u in UTILITIES.items()},
    lines=LINES,
)

DIFFP_ID3 = repaired(
    _PUBLISHED,
    "It is private as published. Splits are drawn by Gini weighted by counts, which is monotone, "
    "so that the factor 2 is left out.",
    choose=choose(GINI),
    variants={
        name: {"choose": choose(u)} for name, u in {**UTILITIES, "ig": INFORMATION_GAIN}.items()
    },
)
