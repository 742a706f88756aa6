"""DPRF: Hou, Li, Meng, Ni, Chen & Liu, 2019; thesis (4.8), (4.28) to (4.30).

Bootstrap samples; the exponential mechanism on ½ information gain + ½ gain ratio. A tree has B/τ,
layer i of d_m the weight 2/(d_m − i + 1), halved between a count and a split; the last layer only
counts, with weight 1. As published ε_u = ε/(2d_m − 1), which leaves much unspent; here ε/w(d_m).
τ = 50, d = 7.
"""

from __future__ import annotations

from functools import partial

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.plans import LAPLACE, harmonic, spread
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.published import by_published
from dpforest_duckdb.splits.utilities import GAIN_AND_RATIO, constant, gain_and_ratio


def plan(request: Request, whole: int | None = None) -> Plan:
    weights = harmonic(request.depth + 1)
    queries = {
        "histogram": (LAPLACE, weights),
        "split": ("exponential mechanism", weights[:-1]),
    }
    return spread(request, queries, whole=whole)


_PUBLISHED = Recipe(
    name="hou-forest",
    title="DPRF by gain and ratio (Hou et al.)",
    year=2019,
    paper="A differentially private random forest by hybrid decision trees, 2019",
    rows="bootstrap",
    split_type="mixed",
    choose=by_published(partial(gain_and_ratio, least=1e-3), constant(1.0)),
    trees=50,
    depth=6,
    plan=lambda request: plan(request, 2 * request.depth + 1),
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, "The sensitivity of the gain ratio has no bound."),
)

HOU_FOREST = repaired(
    _PUBLISHED,
    ALL_ROWS + " Split information counts as one bit at least, which bounds the gain ratio.",
    rows="all",
    choose=by_utility(GAIN_AND_RATIO, "exponential"),
    plan=plan,
)
