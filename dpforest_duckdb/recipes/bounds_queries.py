"""The queries about public bounds that may be far too wide: a check, and windows if it says so.

They come after the noisy number of rows and before everything else of a recipe; see
`learners.private_bounds`.
"""

from __future__ import annotations

import math

from dpforest_duckdb.learners.private_bins import to_be_cut
from dpforest_duckdb.learners.private_bounds import clear_check, clear_window
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.measure import PURE_DP, Measure
from dpforest_duckdb.privacy.plan import PlannedQuery, counting
from dpforest_duckdb.privacy.wording import Numbered, Purpose
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Request

SHARE = 100  # the check costs ε / SHARE at most, or μ² / SHARE


def window(turn: int) -> Numbered:
    """The purpose of a turn's query."""
    return Numbered(f"{Purpose.BOUNDS_WINDOW} {turn}")


def with_check(request: Request, rows: int, measure: Measure) -> Request:
    """The request with the check, if most attributes are numbers without declared bins, and if
    there are enough rows for its answer and for four turns of windows.

    `rows` is a noisy number. `measure` is that of the recipe's costs.
    """
    most = measure.pure_epsilon(request.allowed(measure) // SHARE)
    needed = math.ceil(clear_check() * request.rows_per_unit * NANO / rows)
    numbers = len(to_be_cut(request.domain))
    if needed > most or 2 * numbers <= len(request.domain.attributes):
        return request
    cost = max(needed, most // 10)
    query = counting(Purpose.BOUNDS, (cost,), of="fullest bins", per_row=numbers)
    checked = _with(request, query, measure)
    several = with_windows(checked, 1, 4 * numbers, rows, measure)
    return checked if several else request


def with_windows(
    request: Request, turn: int, attributes: int, rows: int, measure: Measure
) -> Request | None:
    """The request with a window for each of some attributes; None if that would cost too much.

    The windows of all turns together may cost half of what the other preliminary queries leave. In
    ε, the counts of the rows are not taken off first.
    """
    scale = rows / clear_window() / request.rows_per_unit
    cost = measure.drawn_cost(math.ceil(NANO / scale))
    windows = [
        query for query in request.preliminary if query.purpose.startswith(Purpose.BOUNDS_WINDOW)
    ]
    before = sum(query.total for query in windows)
    rest = request.epsilon if measure == PURE_DP else left(request, measure)
    query = PlannedQuery(window(turn), measure.mechanism.on("rows"), (cost,), attributes, measure)
    return _with(request, query, measure) if 2 * (before + query.total) <= before + rest else None


def _with(request: Request, query: PlannedQuery, measure: Measure) -> Request:
    """The request with one more query before the recipe's own.

    Costs in μ² are taken off by the recipe's plan.
    """
    cost = query.total if measure == PURE_DP else 0
    return request.after((*preliminary_queries(request), query), cost)
