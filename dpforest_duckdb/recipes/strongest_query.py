"""The query for the rows that the strongest attribute classifies correctly.

Recipes that have another one for such tables ask it before all queries of their own; see
`learners.strongest_attribute`.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpforest_duckdb.learners.private_bounds import clear_check
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import LAPLACE, PlannedQuery
from dpforest_duckdb.recipes.plans import first_queries
from dpforest_duckdb.request import Request

STRONGEST = "strongest"
CHEAPEST, DEAREST = 1000, 16  # it costs at least ε / CHEAPEST and at most ε / DEAREST


def strongest_is_cheap(request: Request, rows: int) -> bool:
    """Whether noise rarely misleads the query at ε / DEAREST, by a noisy number of rows."""
    return _needed(request, rows) <= request.epsilon // DEAREST


def with_strongest(request: Request, rows: int) -> Request:
    """The request with the query, which costs so much that noise rarely misleads it.

    The cost is within limits, so only a recipe for which `strongest_is_cheap` holds should ask.
    `rows` is a noisy number.
    """
    cost = min(max(_needed(request, rows), request.epsilon // CHEAPEST), request.epsilon // DEAREST)
    query = PlannedQuery(STRONGEST, f"{LAPLACE} on rows classified correctly", (cost,))
    return replace(request, epsilon=request.epsilon - cost, first=(*first_queries(request), query))


def _needed(request: Request, rows: int) -> int:
    """The nano-ε at which noise rarely misleads the query."""
    return math.ceil(clear_check() * request.rows_per_unit * NANO / max(rows, 1))
