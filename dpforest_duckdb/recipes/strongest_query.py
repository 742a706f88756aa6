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
LEAST, MOST = 1000, 16  # it costs at least ε / LEAST and at most ε / MOST


def strongest_is_cheap(request: Request, rows: int) -> bool:
    """Whether noise rarely misleads the query at a cost of ε / MOST, by a noisy number of rows."""
    return _needed(request, rows) <= request.epsilon // MOST


def with_strongest(request: Request, rows: int) -> Request:
    """The request with the query, which costs so much that noise rarely misleads it.

    The cost is within limits, so with few rows noise may. `rows` is a noisy number.
    """
    cost = min(max(_needed(request, rows), request.epsilon // LEAST), request.epsilon // MOST)
    query = PlannedQuery(STRONGEST, f"{LAPLACE} on a max of max counts", (cost,))
    return replace(request, epsilon=request.epsilon - cost, first=(*first_queries(request), query))


def _needed(request: Request, rows: int) -> int:
    """The nano-ε at which noise rarely misleads the query."""
    return math.ceil(clear_check() * request.rows_per_unit * NANO / max(rows, 1))
