"""class-means: a linear discriminant of all attributes, from class means in one release.

For many classes and mostly numeric attributes that each say a little. No attribute is chosen:
the sums of all are released together, with joint noise. Its variance is a fifth to a third of that
of independent noise, at ε up to 1. With a δ and many attributes Gaussian noise is smaller.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import compress

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.class_means import CLASS_MEANS as LEARNER
from dpforest_duckdb.postprocess.pipeline import as_grown
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery, share
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours import auto_rules, constants
from dpforest_duckdb.recipes.plans import mixture_choice
from dpforest_duckdb.recipes.recipe import Adaptation, recipe_of_tables
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits import positions

WINDOWS, SQUARES, PAIRS = 20, 5, 25  # percent of the budget after the number of rows
MOST_PRODUCTS = 2**15  # of pairs of positions: the sums of more take too many statements


def plan(request: Request) -> Plan:
    """The plan in ε or, with a δ, in μ² if that has less noise. With few attributes it has more."""
    pure = _in_measure(request, PURE_DP)
    if left(request, GAUSSIAN_DP) <= 0:
        return pure
    other = _in_measure(request, GAUSSIAN_DP)
    if other.query(Purpose.PRODUCTS):
        same = _planned(request, PURE_DP, Purpose.PRODUCTS, PAIRS)
    elif pure.query(Purpose.PRODUCTS):
        return pure
    else:
        same = pure
    return other if _noise(other, request) < _noise(same, request) else pure


def _noise(plan: Plan, request: Request) -> float:
    """The noise of the sums, times that of the products if there are any; infinite if a query gets
    nothing.

    So plans with the same queries are compared by the product of two ratios.
    """
    if not all(cost for query in plan.queries for cost in query.by_depth):
        return math.inf
    queries = plan.query(Purpose.MEANS), plan.query(Purpose.PRODUCTS)
    return math.prod(LEARNER.deviation(query, request) or 0.0 for query in queries if query)


def _in_measure(request: Request, measure: Measure) -> Plan:
    """Windows and means; products too if their noise is small by this plan. Otherwise squares, and
    a choice of the weight of the sums of log-odds if the rows can tell weights apart.
    """
    if request.rows and _pairs(request) <= MOST_PRODUCTS:
        whole = _planned(request, measure, Purpose.PRODUCTS, PAIRS)
        if auto_rules.noise_of_products(LEARNER, whole, request) <= constants.CLEAN:
            return whole
    rated = auto_rules.few_sums(request) and auto_rules.models_differ(request)
    chosen = 100 * auto_rules.choice_part(request) if rated else 0
    return _planned(request, measure, Purpose.SQUARES, SQUARES, chosen)


def _pairs(request: Request) -> int:
    """The number of pairs of positions, each with itself too."""
    size = sum(sum(positions.blocks(each)) for each in request.domain.attributes)
    return size * (size + 1) // 2


def _planned(
    request: Request, measure: Measure, second: Purpose, percent: int, chosen: int | Fraction = 0
) -> Plan:
    """Windows, the `second` moments for that percentage of ε, a choice of the weight for `chosen`
    percent; the means get what these leave. What gets no part is not queried.
    """
    attributes = request.domain.recut(auto_rules.MOST).attributes
    windows = sum(map(positions.has_window, attributes))
    drawn = WINDOWS if windows else 0
    percents = (drawn, percent, chosen, 100 - drawn - percent - chosen)
    parts = [measure.part(each) for each in percents]
    ranges, moments, choice, means = share(left(request, measure), parts)
    of_one, by_rows = (ranges // max(windows, 1),), measure.mechanism.on("rows")
    queries = (
        PlannedQuery(Purpose.WINDOW, by_rows, of_one, windows, measure),
        PlannedQuery(second, measure.blocks, (moments,), measure=measure),
        mixture_choice(measure.pure_epsilon(choice)),
        PlannedQuery(Purpose.MEANS, measure.blocks, (means,), measure=measure),
    )
    return Plan((*preliminary_queries(request), *compress(queries, percents)))


def adapt(histogram: Integers, request: Request) -> Request:
    """The noisy rows of each class, and numbers in as many bins as an attribute may have."""
    domain = request.domain.recut(auto_rules.MOST)
    return replace(auto_rules.with_histogram(histogram, request), domain=domain)


CLASS_MEANS = recipe_of_tables(
    name="class-means",
    title="A linear discriminant of every attribute, by joint noise",
    depth=1,
    fixed_trees=True,
    one_tree_per_attribute=True,
    plan=plan,
    learner=LEARNER,
    adaptation=Adaptation(adapt, private_bounds=True),
    finish=as_grown,
)
