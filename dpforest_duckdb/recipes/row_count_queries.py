"""The queries that count rows, which come before all others, and what they may cost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.measure import Measure
from dpforest_duckdb.privacy.plan import ROW_COUNTS, Plan, PlannedQuery, counting
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.request import Request

FIRST_COUNT = 400  # ε / FIRST_COUNT is the cost of a first count of the rows
CLEAR_COUNT = 30  # times the noise in the rows of a class: what a second count aims at
ROWS_SHARE = Fraction(1, 25)  # of the budget, for a noisy number of rows; the most for two counts
ROWS_SHARE_OF_SEVERAL = Fraction(1, 10)  # the same for several classes, whose noise adds up
PUBLIC_ROWS = "The number of rows is taken as public."
NOISY_ROWS = "A noisy number of rows is paid for with 4 % of the budget."


def rows_share(request: Request) -> Fraction:
    """The most of ε that this package's own recipes spend on a noisy number of rows."""
    return ROWS_SHARE if len(request.domain.classes) == 2 else ROWS_SHARE_OF_SEVERAL


def count_queries(request: Request, counted: Integers | None = None) -> tuple[PlannedQuery, ...]:
    """The queries that count the rows of each class, the same in all recipes that follow them.

    The first count costs ε / FIRST_COUNT. `counted[class]` are the noisy rows that it shows. If its
    noise is above 1 / CLEAR_COUNT of the rows of a class, there is a second count, which costs what
    it needs for noise of that size. The rows of a class are n/C times the `evenness` of C classes.
    Before `counted` is known, and for few rows, both together cost `rows_share`, but at most half
    of the budget, which is in μ² with a δ.
    """
    if request.preliminary:
        return tuple(query for query in request.preliminary if query.purpose in ROW_COUNTS)
    half = request.measure.pure_epsilon(request.allowed(request.measure) // 2)
    most = min(int(request.epsilon * rows_share(request)), half)
    first = max(min(request.epsilon // FIRST_COUNT, most), 1)  # tiny ones are refused later
    again = most - first
    if counted is not None:
        unit = math.sqrt(2) * request.rows_per_unit * NANO  # the noise of a count for 1 nano-ε
        rows = max(int(counted.sum()), 1) * evenness(counted, unit / first)
        needed = CLEAR_COUNT * unit * len(counted) / rows
        again = min(again, int(needed)) if needed > first else 0
    if again < first:
        again = 0
    costs = {Purpose.ROWS: first, Purpose.ROWS_AGAIN: again}
    return tuple(counting(query, (cost,)) for query, cost in costs.items() if cost)


def evenness(counted: Integers, noise: float) -> float:
    """C / √Σ(1/s) of C classes with shares s: 1 if all classes are equally frequent, else less.

    In n rows, noise of a given size adds as much to the expected log loss as in n · evenness rows
    of equally frequent classes. `counted[class]` are noisy rows. Each class counts as at least
    `noise`, the standard deviation of their noise.
    """
    classes = np.maximum(counted, noise)
    return len(classes) / math.sqrt(float((classes.sum() / classes).sum()))


def preliminary_queries(request: Request) -> tuple[PlannedQuery, ...]:
    """The queries asked before the recipe's own: row counts, then bounds, windows and strongest
    if planned.
    """
    return request.preliminary or count_queries(request)


def left(request: Request, measure: Measure) -> int:
    """What `preliminary_queries` leave of the budget in a measure, in nano-ε or atto-μ²; at most 0
    if that needs a δ and there is none.
    """
    before = Plan(preliminary_queries(request))
    return request.allowed(measure) - measure.spent(before)
