"""class-means: a linear discriminant of all attributes, from class means in one release.

For many classes and mostly numeric attributes that each say a little. No attribute is chosen:
the sums of all are released together, with joint noise. Its variance is a fifth to a third of that
of independent noise, at ε up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.class_means import CLASS_MEANS as LEARNER
from dpforest_duckdb.postprocess.pipeline import as_grown
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery, share
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP
from dpforest_duckdb.recipes.ours import auto_rules, constants
from dpforest_duckdb.recipes.recipe import as_many_as_attributes, own_recipe
from dpforest_duckdb.recipes.row_count_queries import count_cost, first_queries
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits import positions
from dpforest_duckdb.splits.choose import at_random

WINDOWS, SQUARES, PAIRS = 20, 5, 25  # percent of the budget after the number of rows
MOST_RATED = 2**12  # attributes times classes whose sums rows rate: more make a statement too large
MOST_PRODUCTS = 2**15  # of pairs of positions: the sums of more take too many statements


def plan(request: Request) -> Plan:
    """Windows and means; products too if their noise is small by this plan. Otherwise squares, and
    a choice of the weight of the sums of log-odds if the rows can tell weights apart.
    """
    if request.rows and _pairs(request) <= MOST_PRODUCTS:
        whole = _planned(request, (("products", "joint noise", PAIRS),))
        if auto_rules.noise_of_products(LEARNER, whole, request) <= constants.CLEAN:
            return whole
    few = len(request.domain.attributes) * len(request.domain.classes) <= MOST_RATED
    rated = few and auto_rules.models_differ(request)
    chosen = 100 * auto_rules.choice_part(request) if rated else 0
    mixture = ("mixture", PERMUTE_AND_FLIP.on("points"), chosen)
    return _planned(request, (("squares", "joint noise", SQUARES), mixture))


def _pairs(request: Request) -> int:
    """The number of pairs of positions, each with itself too."""
    size = sum(sum(positions.blocks(each)) for each in request.domain.attributes)
    return size * (size + 1) // 2


def _planned(request: Request, others: Sequence[tuple[str, str, int | Fraction]]) -> Plan:
    """Queries with the percentages of `others`; the means get what these and windows leave."""
    attributes = auto_rules.recut(request.domain, auto_rules.MOST).attributes
    windows = sum(map(positions.has_window, attributes))
    spread = [("window", PERMUTE_AND_FLIP.on("rows"), WINDOWS if windows else 0), *others]
    spread.append(("means", "joint noise", 100 - sum(percent for *_, percent in spread)))
    rest = request.epsilon - count_cost(request)
    times = {"window": windows}
    costs = share(rest, [percent for *_, percent in spread])
    queries = (
        PlannedQuery(purpose, how, (cost // times.get(purpose, 1),), times.get(purpose, 1))
        for (purpose, how, percent), cost in zip(spread, costs, strict=True)
        if percent
    )
    return Plan((*first_queries(request), *queries))


def adapt(histogram: Integers, request: Request) -> Request:
    seen = auto_rules.careful(int(histogram.sum()), request)
    return replace(
        seen,
        histogram=tuple(histogram.tolist()),
        domain=auto_rules.recut(request.domain, auto_rules.MOST),
    )


CLASS_MEANS = own_recipe(
    name="class-means",
    title="A linear discriminant of every attribute, by joint noise",
    rows="all",
    split_type="multiway",
    choose=at_random,
    trees=as_many_as_attributes,
    depth=1,
    own_trees=True,
    own_depth=True,
    distinct_roots=True,
    plan=plan,
    learner=LEARNER,
    private_bounds=True,
    adapt=adapt,
    finish=as_grown,
    link="softmax",
)
