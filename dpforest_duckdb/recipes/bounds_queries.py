"""The queries about public bounds that may be far too wide: a check, and windows if it says so.

They come after the noisy number of rows and before everything else of a recipe; see
`learners.private_bounds`.
"""

from __future__ import annotations

import math

from dpforest_duckdb.learners.private_bins import to_be_cut
from dpforest_duckdb.learners.private_bounds import clear_check, clear_window, window_mechanism
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.gaussian_dp import drawn_cost, pure_epsilon
from dpforest_duckdb.privacy.plan import Measure, PlannedQuery, counting
from dpforest_duckdb.recipes.row_count_queries import preliminary_queries
from dpforest_duckdb.request import Request

BOUNDS, WINDOW = "bounds", "bounds window"
SHARE = 100  # the check costs ε / SHARE at most, or μ² / SHARE


def window(turn: int) -> str:
    """The purpose of a turn's query."""
    return f"{WINDOW} {turn}"


def with_check(request: Request, rows: int, measure: Measure) -> Request:
    """The request with the check, if most attributes are numbers without declared bins, and if
    there are enough rows for its answer and for four turns of windows.

    `rows` is a noisy number. `measure` is that of the recipe's costs.
    """
    most = request.epsilon // SHARE if measure == "ε" else pure_epsilon(request.squared_mu // SHARE)
    needed = math.ceil(clear_check() * request.rows_per_unit * NANO / rows)
    numbers = len(to_be_cut(request.domain))
    if needed > most or 2 * numbers <= len(request.domain.attributes):
        return request
    cost = max(needed, most // 10)
    query = counting(BOUNDS, (cost,), of="fullest bins", per_row=numbers)
    checked = _with(request, query, measure)
    several = with_windows(checked, 1, 4 * numbers, rows, measure)
    return checked if several else request


def with_windows(
    request: Request, turn: int, attributes: int, rows: int, measure: Measure
) -> Request | None:
    """The request with a window for each of some attributes; None if windows would cost more than
    half of ε; of μ², half of what is left after the rows and the check.
    """
    scale = rows / clear_window() / request.rows_per_unit
    epsilon = math.ceil(NANO / scale)
    cost = epsilon
    windows = [query for query in request.preliminary if query.purpose.startswith(WINDOW)]
    before = sum(query.total for query in windows)
    whole = request.epsilon + before
    if measure == "μ²":
        cost = drawn_cost(epsilon)
        whole = request.squared_mu - sum(
            q.squared_mu for q in request.preliminary if q not in windows
        )
    mechanism = window_mechanism(measure).on("rows")
    query = PlannedQuery(window(turn), mechanism, (cost,), attributes, measure)
    return _with(request, query, measure) if 2 * (before + query.total) <= whole else None


def _with(request: Request, query: PlannedQuery, measure: Measure) -> Request:
    """The request with one more query before the recipe's own.

    Costs in μ² are taken off by the recipe's plan.
    """
    cost = query.total if measure == "ε" else 0
    return request.after((*preliminary_queries(request), query), cost)
