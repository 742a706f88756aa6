"""DPGDF: Guan, Sun, Shi, Wu & Du, A differentially private greedy decision forest, 2020.

Trees on disjoint rows, each with all of B: ε1 = B/2 for splits by Gini, ε2 = B/2 for noisy counts,
more for deeper layers, by ∛2 (4.33). As published (4.34) has i + 1 in its exponent and spends
1.587 ε2; with i − 1 it adds up. Selective aggregation of the trees (Algorithm 2); d = m/2, τ = 50.
Assumed: in both forms public bins for the averages of every five values, and trees selected by
their own noisy counts, the better half of them.
"""

from __future__ import annotations

from fractions import Fraction

from dpforest_duckdb.postprocess.pipeline import alone, of_selected
from dpforest_duckdb.postprocess.pruning import keep_the_better_half
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.plans import LAPLACE, cube_roots, spread
from dpforest_duckdb.recipes.recipe import Recipe, half_the_attributes, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def plan(request: Request, exponent: int = 0) -> Plan:
    layers = request.depth + 1
    counts = cube_roots(layers, exponent)
    unit = sum(cube_roots(layers))
    queries = {
        "histogram": (LAPLACE, tuple(count / unit for count in counts)),
        "split": ("exponential mechanism", (Fraction(1, request.depth),) * request.depth),
    }
    return spread(request, queries, disjoint=True, whole=2)


_PUBLISHED = Recipe(
    name="guan-dpgdf",
    title="DPGDF (Guan et al.)",
    year=2020,
    paper="A differentially private greedy decision forest classification algorithm, 2020",
    rows="disjoint",
    split_type="mixed",
    choose=by_utility(with_factor_2(GINI), "exponential"),
    trees=50,
    depth=half_the_attributes,
    plan=lambda request: plan(request, 2),
    finish=of_selected(keep_the_better_half, alone(vote_by_majority)),
    flaws=(
        "(4.34) spends 1.587 times the budget of the counts.",
        "Averages of every five values are read off the rows, and so are the errors that select "
        "trees (neither here).",
    ),
)

GUAN_DPGDF = repaired(
    _PUBLISHED,
    "The exponent of (4.34) is i - 1, so that the layers add up. Trees are selected by released "
    "counts, and bins are public.",
    choose=by_utility(GINI, "exponential"),
    plan=plan,
)
