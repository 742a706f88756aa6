"""The branches of a recipe that adapts to the rows: what it does for any noisy number of them."""

from __future__ import annotations

import functools
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpforest_duckdb.privacy.plan import ROW_COUNTS, Plan
from dpforest_duckdb.recipes.adaptation import Adapted, adapted
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request

MOST_ROWS = 2**40  # more than a table has
STEP = 1.25  # factor between the numbers of rows at which a change is looked for


@dataclass(frozen=True)
class Branch:
    """What happens for a noisy number of rows from `least` to `most`; None is no limit.

    `first` and `last` are the requests at both ends, between which trees, depth and bins can grow.
    """

    recipe: Recipe
    least: int
    most: int | None
    first: Request
    last: Request

    @property
    def plans(self) -> tuple[Plan, Plan]:
        """The queries at both ends."""
        return self.recipe.plan(self.first), self.recipe.plan(self.last)


def branches(recipe: Recipe, request: Request) -> list[Branch]:
    """Every branch that a request can take, from few rows to many; public.

    A branch ends where the recipe changes, or what it queries besides counting the rows, or whether
    a query costs ε or μ². Classes are taken as equally frequent. Empty if nothing depends on the
    number of rows. A branch can be missed if its last number of rows is less than STEP times its
    first, and the same branch comes before and after it.
    """
    if not recipe.adaptation.counts_rows:
        return []

    @functools.cache
    def at(rows: int) -> Adapted:
        classes = len(request.domain.classes)
        return adapted(recipe, request, np.arange(rows, rows + classes) // classes)

    @functools.cache
    def queries(rows: int) -> tuple[object, ...]:
        others = [query for query in at(rows).plan.queries if query.purpose not in ROW_COUNTS]
        return id(at(rows).recipe), *((query.purpose, query.measure) for query in others)

    def start_of(found: tuple[object, ...], low: int, high: int) -> int:
        return bisect_left(range(high), 1, lo=low, key=lambda rows: queries(rows) == found)

    tried = [1]
    while tried[-1] < MOST_ROWS:
        tried.append(max(tried[-1] + 1, int(tried[-1] * STEP)))
    starts = [1]
    for low, high in pairwise(tried):
        between, last = [], high
        while queries(last) != queries(low):
            between.append(start_of(queries(last), low, last))
            last = between[-1] - 1
        starts += reversed(between)
    ends = [start - 1 for start in starts[1:]]
    return [
        Branch(at(least).recipe, least, most, at(least).request, at(most or MOST_ROWS).request)
        for least, most in zip(starts, [*ends, None], strict=True)
    ]
