"""The query for the rows that the strongest attribute alone classifies wrongly.

It comes before all queries of a recipe's own. Where `auto` picks `class-means`, `log-odds` takes
its place if an attribute classifies most rows correctly; where it picks `boosted`, or
`tree-beside-sums` for three classes or more, if an attribute classifies nearly all. `log-odds` uses
fewer attributes if few rows are left. See `learners.strongest_attribute`.
"""

from __future__ import annotations

import math

from dpforest_duckdb.learners.private_bounds import clear_check
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import counting
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.row_count_queries import preliminary_queries
from dpforest_duckdb.request import Request

CHEAPEST, DEAREST = 1000, 16  # it costs at least ε / CHEAPEST and at most ε / DEAREST
CLEAR_FIGURE = 10  # times the noise in the rows outside the most frequent class: `clear_cost`


def strongest_is_cheap(request: Request) -> bool:
    """Whether the noise at ε / DEAREST rarely exceeds a quarter of the noisy number of rows."""
    needed = math.ceil(clear_check() * request.rows_per_unit * NANO / max(request.rows, 1))
    return needed <= request.epsilon // DEAREST


def strongest_cost(request: Request) -> int:
    """What the query costs by the noisy number of rows, in nano-ε: the part 1 / √(n·ε) of ε.

    A part s of ε makes the figure wrong by about 1 / (s·n·ε) of the rows, and what it takes from
    all other queries grows with s. So the best s is proportional to 1 / √(n·ε). It is within
    limits, so only a recipe for which `strongest_is_cheap` holds should ask.
    """
    part = math.isqrt(request.epsilon * request.rows_per_unit * NANO // max(request.rows, 1))
    return min(max(part, request.epsilon // CHEAPEST), request.epsilon // DEAREST)


def clear_cost(request: Request) -> int:
    """What the query costs for a clear figure, in nano-ε; 0 if that is too much.

    The standard deviation of a clear figure is 1 / CLEAR_FIGURE of the noisy rows outside the most
    frequent class. The query costs at least ε / CHEAPEST, and at most ε / DEAREST or, with a δ,
    μ² / DEAREST.
    """
    others = request.outside_most_frequent
    in_measure = request.measure.pure_epsilon(request.allowed(request.measure) // DEAREST)
    most = min(request.epsilon // DEAREST, in_measure)
    needed = math.ceil(CLEAR_FIGURE * math.sqrt(2) * request.rows_per_unit * NANO / max(others, 1))
    cost = max(needed, request.epsilon // CHEAPEST)
    return cost if cost <= most else 0


def with_strongest(request: Request, cost: int) -> Request:
    """The request with the query at a cost in nano-ε."""
    query = counting(Purpose.STRONGEST, (cost,), of="rows classified wrongly")
    return request.after((*preliminary_queries(request), query), cost)
