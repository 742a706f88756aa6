"""The query for the rows that the strongest attribute alone classifies wrongly.

It comes before all queries of a recipe's own. `class-means`, where `auto` picks it, gives way to
`log-odds` if an attribute classifies most rows correctly. `log-odds` uses fewer attributes if few
rows are left. See `learners.strongest_attribute`.
"""

from __future__ import annotations

import math

from dpforest_duckdb.learners.private_bounds import clear_check
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import counting
from dpforest_duckdb.recipes.row_count_queries import preliminary_queries
from dpforest_duckdb.request import Request

STRONGEST = "strongest"
CHEAPEST, DEAREST = 1000, 16  # it costs at least ε / CHEAPEST and at most ε / DEAREST


def strongest_is_cheap(request: Request, rows: int) -> bool:
    """Whether the noise at ε / DEAREST rarely exceeds a quarter of a noisy number of rows."""
    needed = math.ceil(clear_check() * request.rows_per_unit * NANO / max(rows, 1))
    return needed <= request.epsilon // DEAREST


def with_strongest(request: Request, rows: int) -> Request:
    """The request with the query; `rows` is a noisy number.

    It costs the part 1 / √(n·ε) of ε. A part s of ε makes the figure wrong by about 1 / (s·n·ε) of
    the rows, and what it takes from all other queries grows with s. So the best s is proportional
    to 1 / √(n·ε). It is within limits, so only a recipe for which `strongest_is_cheap` holds should
    ask.
    """
    part = math.isqrt(request.epsilon * request.rows_per_unit * NANO // max(rows, 1))
    cost = min(max(part, request.epsilon // CHEAPEST), request.epsilon // DEAREST)
    query = counting(STRONGEST, (cost,), of="rows classified wrongly")
    return request.after((*preliminary_queries(request), query), cost)
