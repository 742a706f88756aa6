"""DPDF: Fletcher & Islam, A Differentially Private Decision Forest, AusDM 2015, Algorithm 1.

Every node tells a noisy class histogram (Q1); a node is split by the attribute that the exponential
mechanism draws by Gini (Q2), into one child per category. Depth δ in the paper counts nodes on a
path, so there are δ − 1 splits and 2δ − 1 queries: ε = B / (τ(2δ − 1)), (10).
Assumed: class labels are the public domain's in both forms; Σf of line 15, not the Σ|f| of (26).
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each, with_cells
from dpforest_duckdb.postprocess.pruning import prune_by_gini
from dpforest_duckdb.postprocess.voting import vote_by_confidence
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.plans import LAPLACE, spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.recipes.stopping import small_or_pure
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.published import by_published
from dpforest_duckdb.splits.utilities import GINI, published_gini, published_sensitivity


def plan(request: Request, whole: int | None = None) -> Plan:
    """A histogram at every node and a split at every inner one, all alike."""
    queries = {
        "histogram": (LAPLACE, (1,) * (request.depth + 1)),
        "split": ("exponential mechanism on Gini", (1,) * request.depth),
    }
    return spread(request, queries, whole=whole)


_PUBLISHED = Recipe(
    name="dpdf",
    title="DPDF (Fletcher & Islam)",
    year=2015,
    paper="A Differentially Private Decision Forest, AusDM 2015",
    rows="all",
    split_type="multiway",
    choose=by_published(published_gini, published_sensitivity),
    trees=1,
    depth=5,
    plan=lambda request: plan(request, 2 * request.depth - 1),  # charged; 2 δ + 1 are asked
    stop=small_or_pure(100),
    finish=each(with_cells(prune_by_gini), alone(vote_by_confidence)),
    distinct_roots=True,
    instead="diffprf",
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
    choose=by_utility(GINI, "exponential"),
    depth_of_root=1,  # split while d < δ, the root has d = 1
    plan=plan,
)
