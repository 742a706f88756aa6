"""DPRF-Gini: Li & Li, Random forest algorithm under differential privacy, ICCT 2017; known through
the thesis.

Trees on bootstrap samples. The best point of a numeric attribute, of the midpoints of neighbouring
values (4.5), is the one of least Gini (4.6); the attribute is then drawn by the exponential
mechanism on Gini; the class counts of the leaves have Laplace noise.
Assumed: τ = 20, d = 5, as the thesis supposes; √m random attributes a node; B/τ a tree, alike for
its d splits and its leaves; Gini weighted by rows, with Δ = 2; multiway splits of categories;
points are public bin edges, for midpoints of observed neighbours, which are private; majority.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.plans import LAPLACE, spread
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import among, attribute_first, by_utility
from dpforest_duckdb.splits.published import by_best_points, where_points_are_left
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def plan(request: Request) -> Plan:
    d = request.depth
    return spread(request, {"split": ("exponential mechanism", (1,) * d), "leaf": (LAPLACE, (1,))})


_PUBLISHED = Recipe(
    name="dprf-gini",
    title="DPRF-Gini (Li & Li)",
    year=2017,
    paper="Random forest algorithm under differential privacy, ICCT 2017",
    rows="bootstrap",
    split_type="mixed",
    choose=among(by_best_points(with_factor_2(GINI))),
    trees=20,
    depth=5,
    plan=plan,
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, "The best point of each attribute is read off the true counts, unpaid."),
)

DPRF_GINI = repaired(
    _PUBLISHED,
    ALL_ROWS + " The attribute is drawn by its best point, which is monotone as Gini is, and a "
    "point of it by a second draw, for half of the share each.",
    rows="all",
    choose=among(
        where_points_are_left(
            attribute_first(GINI, GINI, "exponential"), otherwise=by_utility(GINI, "exponential")
        )
    ),
)
