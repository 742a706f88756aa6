"""DPDF: Fletcher & Islam, A Differentially Private Decision Forest, AusDM 2015, Algorithm 1.

Every node tells a noisy class histogram (Q1); a node is split by the attribute that the exponential
mechanism draws by Gini (Q2), into one child per category. Depth δ in the paper counts nodes on a
path, so there are δ − 1 splits and 2δ − 1 queries: ε = B / (τ(2δ − 1)), (10).

As published, three things fail. The sensitivity of Gini is taken from a noisy n (Theorem 1), so a
node that noise has made large is split with more budget than it is given. Line 16 splits while
d ≤ δ, which makes 2δ + 1 queries and charges 2δ − 1. Here the rigorous form takes count-weighted
Gini (sensitivity 2 whatever n is, monotone: no factor 2) and splits while d < δ.
Assumed: class labels and categories are the public domain's, in both forms; Σf of line 15, not the
Σ|f| of (26); "other" and NULL are children of their own.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.forest import Tree
from dpforest_duckdb.privacy.accountant import Plan, Query
from dpforest_duckdb.pruning import prune_by_gini
from dpforest_duckdb.recipe import Counts, Mask, Recipe, Request
from dpforest_duckdb.splits.choose import by_published_gini, by_utility
from dpforest_duckdb.splits.utilities import GINI
from dpforest_duckdb.voting import vote_by_confidence

MINIMUM = 100  # noisy rows that a node needs to be split (line 16)


def query_epsilon(request: Request, nodes_on_path: int) -> int:
    """ε of one query in nano-ε, (10), with δ = `nodes_on_path`."""
    return request.epsilon // (request.trees * (2 * nodes_on_path - 1))


def plan(request: Request) -> Plan:
    """δ histograms and δ − 1 splits on a path, in each of τ trees over the same rows."""
    epsilon, trees = query_epsilon(request, request.depth + 1), request.trees
    return Plan(
        (
            Query("histogram", "discrete Laplace", epsilon, request.depth + 1, trees),
            Query("split", "exponential mechanism on Gini", epsilon, request.depth, trees),
        )
    )


def published_plan(request: Request) -> Plan:
    """Algorithm 1 to the letter: ε for 2δ − 1 queries (δ = depth), 2δ + 1 of them asked."""
    epsilon, trees = query_epsilon(request, request.depth), request.trees
    return Plan(
        (
            Query("histogram", "discrete Laplace", epsilon, request.depth + 1, trees),
            Query("split", "exponential mechanism, Δ of a noisy n", epsilon, request.depth, trees),
        )
    )


def stop(histogram: Counts) -> Mask:
    """Lines 15 and 16 on noisy `histogram[node, class]`: too small, or noisily pure."""
    size = histogram.sum(axis=1)
    pure: Mask = (histogram >= size[:, None]).any(axis=1)
    small: Mask = size < MINIMUM
    return pure | small


def finish(tree: Tree, request: Request, plan: Plan) -> Tree:
    return vote_by_confidence(prune_by_gini(tree, request.domain.cells))


_PUBLISHED = Recipe(
    name="dpdf",
    title="DPDF (Fletcher & Islam)",
    year=2015,
    paper="A Differentially Private Decision Forest, AusDM 2015",
    rows="all",
    ways="multiway",
    choose=by_published_gini,
    trees=1,
    depth=5,
    plan=published_plan,
    stop=stop,
    finish=finish,
    distinct_roots=True,
    flaws=(
        "The sensitivity of Gini is computed from a noisy node size, which can be far above the "
        "true one.",
        "Splitting while d <= depth makes two queries more on a path than are charged.",
    ),
)

DPDF = replace(
    _PUBLISHED,
    choose=by_utility(GINI, "exponential"),
    root=1,  # split while d < δ, the root has d = 1
    plan=plan,
    published=_PUBLISHED,
    flaws=(),
    repair="Count-weighted Gini, whose sensitivity is 2 whatever the node size; splits while "
    "d < depth, so that every query on a path is charged.",
)
