"""DPDF: Fletcher & Islam, A Differentially Private Decision Forest, AusDM 2015, Algorithm 1.

Every node releases a noisy class histogram (Q1). The exponential mechanism draws the attribute of a
split by Gini (Q2); a split has one child per category. The depth δ of the paper counts nodes on a
path, so there are δ − 1 splits and 2δ − 1 queries: ε = B / (τ(2δ − 1)), (10).
Assumed: class labels are the public domain's in both forms; a child per public bin of a number; Σf
of line 15, not the Σ|f| of (26); pruning by the ≥ of (27), not the < of line 43, with negative
counts as 0 in it and in confidences; a confidence of 1/|C| where no count is positive.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each, with_cells
from dpforest_duckdb.postprocess.pruning import prune_by_gini
from dpforest_duckdb.postprocess.voting import vote_by_confidence
from dpforest_duckdb.privacy.plan import LAPLACE, Plan, drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.recipes.stopping import small_or_pure
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility, distinct_roots
from dpforest_duckdb.splits.published import by_published
from dpforest_duckdb.splits.utilities import GINI, published_gini, published_sensitivity


def plan(request: Request, whole: int | None = None) -> Plan:
    """A histogram at every node and a split at every inner one, at equal costs."""
    histograms = (LAPLACE, (1,) * (request.depth + 1))
    splits = (drawn(EXPONENTIAL, "Gini"), (1,) * request.depth)
    queries = {Purpose.HISTOGRAM: histograms, Purpose.SPLIT: splits}
    return spread(request, queries, whole=whole)


LINES = (
    Line("Every tree sees all rows.", "Algorithm 1, lines 5 and 6", "rows"),
    Line(
        "There are as many trees as requested. The experiments have 1 and 4.", "Section 5", "trees"
    ),
    Line(
        "A split has one child per category.",
        "Algorithm 1, lines 20 to 23",
        "split_type",
        assumed="It has one more, for values outside the domain. Its noisy counts take part in "
        "(27).",
    ),
    Line(
        "Numeric attributes are made discrete beforehand.",
        "footnote 2",
        "split_type",
        assumed="They have a child per public bin.",
    ),
    Line("The greatest depth is 5.", "Section 5", "depth"),
    Line("A query has ε = β / (τ(2δ − 1)).", "(10) and line 2", "plan: plan"),
    Line(
        "A node is split while d ≤ δ, which makes 2δ + 1 queries on a path.",
        "line 16",
        "plan: plan",
        repaired="It is split while d < δ, which makes the 2δ − 1 queries that (10) charges.",
    ),
    Line(
        "Q1 is a noisy count of each class at every node, of the classes c ∈ C ∈ D.",
        "(7) and line 14",
        "plan: plan",
        assumed="In both forms the classes are those of the public domain.",
    ),
    Line(
        "A node ends below 100 noisy rows, if one class has all of them, or if no "
        "attribute is left.",
        "line 16",
        "stop: small_or_pure",
    ),
    Line(
        "The size of a node is the sum of its noisy counts f; (26) has |f|.",
        "line 15",
        "stop: small_or_pure",
        assumed="The sum of f is used, as in line 15.",
    ),
    Line(
        "Q2 is the exponential mechanism on Gini, by ε G / 2Δ.",
        "(8) and line 32",
        "choose: by_published",
        repaired="Gini is weighted by counts, which is monotone, so the factor 2 is left out.",
    ),
    Line(
        "Δ(G) is computed from the noisy size of the node.",
        "Theorem 1 and line 17",
        "choose: published_sensitivity",
        repaired="Δ is 2, whatever the size of the node.",
    ),
    Line(
        "Two trees have different attributes at their roots.", "line 29", "choose: distinct_roots"
    ),
    Line(
        "Leaves are removed if they are no purer on average than their parent.",
        "(27) has ≥, line 43 has <",
        "finish: prune_by_gini",
        assumed="The test is ≥, as in (27). The two differ only at a tie, and none of 621 nodes "
        "grown on Nursery, Car and Tic-tac-toe was one.",
    ),
    Line(
        "The purity of leaves is weighted by the sums of their class counts.",
        "lines 41 and 42; (27) divides by |D_i|",
        "finish: prune_by_gini",
        assumed="Negative counts are 0, so that no weight and no share is negative. Leaves without "
        "a positive count are removed with their siblings if these have none either.",
    ),
    Line(
        "All rules and their parts are listed, with support and confidence.",
        "Section 3.3",
        "finish: prune_by_gini",
        assumed="`dpforest rules` lists them, from the noisy counts of all nodes that are left.",
    ),
    Line(
        "A leaf votes by its confidence.",
        "Section 3",
        "finish: vote_by_confidence",
        assumed="Negative counts are 0.",
    ),
    Line(
        "A leaf may have no positive count.",
        NO_TEXT,
        "finish: vote_by_confidence",
        assumed="Its confidence is 1/|C|, for the class of its largest count.",
    ),
)

_PUBLISHED = Recipe(
    name="dpdf",
    title="DPDF (Fletcher & Islam)",
    year=2015,
    paper="A Differentially Private Decision Forest, AusDM 2015",
    rows="all",
    split_type="multiway",
    choose=distinct_roots(by_published(published_gini, published_sensitivity)),
    trees=1,
    depth=5,
    plan=lambda request: plan(request, 2 * request.depth - 1),  # charged; 2 δ + 1 are made
    stop=small_or_pure(100),
    finish=each(with_cells(prune_by_gini), alone(vote_by_confidence)),
    one_tree_per_attribute=True,
    instead="diffprf",
    lines=LINES,
    flaws=(
        "The sensitivity of Gini is computed from a noisy node size, which can be far above the "
        "true one.",
        "Splitting while d <= depth makes two queries more on a path than are charged.",
    ),
)

DPDF = repaired(
    _PUBLISHED,
    "Gini is weighted by counts, so that its sensitivity is 2 whatever the node size. Nodes are "
    "split while d < depth, so that every query on a path is charged.",
    choose=distinct_roots(by_utility(GINI, EXPONENTIAL)),
    depth_of_root=1,  # split while d < δ, the root has d = 1
    plan=plan,
)
