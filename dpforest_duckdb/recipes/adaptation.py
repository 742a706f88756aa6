"""How recipe and request follow from noisy figures of the rows.

A run asks for them in its preliminary steps (`training.preliminary`). A dry run, and the checks
before the debit, use the same functions with made-up figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.privacy.plan import AGAIN, Plan
from dpforest_duckdb.recipes.bounds_queries import with_check
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.recipes.row_count_queries import count_queries
from dpforest_duckdb.recipes.strongest_query import STRONGEST, strongest_is_cheap, with_strongest
from dpforest_duckdb.request import Request

# table sizes at which adapted plans are checked before the debit
SIZES = (0, *(10**digits for digits in range(2, 19, 2)))
DENSE = tuple(2**power for power in range(7, 41))  # those at which we look for a plan with a δ


def adapted(recipe: Recipe, request: Request, classes: Integers) -> tuple[Recipe, Request]:
    """The recipe to continue with, and its request, once class counts of all rows are known.

    `classes[class]` are noisy, or true in a published form that takes them as public.
    """
    counted = with_second_count(recipe, request, classes)
    successor, chosen = choose_successor(recipe, counted, classes)
    return successor, sized(successor, chosen, classes)


def with_second_count(recipe: Recipe, request: Request, classes: Integers) -> Request:
    """The request with the queries that count the rows, by the noisy classes of a first count.

    The same request if the recipe counts them once.
    """
    if recipe.plan(request).query(AGAIN) is None:
        return request
    return replace(request, preliminary=count_queries(request, classes))


def choose_successor(recipe: Recipe, request: Request, classes: Integers) -> tuple[Recipe, Request]:
    """The recipe to continue with, and the request that it adapts to the rows.

    The request has the queries that the recipe asks next: the check of bounds, and how many rows
    the strongest attribute classifies wrongly.
    """
    rows = max(int(classes.sum()), 1)
    adaptation = recipe.adaptation
    if adaptation.successor is not None:
        histogram = tuple(classes.tolist())
        recipe = adaptation.successor(replace(request, rows=rows, histogram=histogram))
        adaptation = recipe.adaptation
        if not adaptation.keeps_size:
            request = in_own_size(recipe, request)
    if adaptation.private_bounds:
        request = with_check(request, rows, adaptation.measure(request))
    several = len(request.domain.classes) > 2 and request.trees > 1
    asks = adaptation.asks_strongest and several and strongest_is_cheap(request, rows)
    if asks or adaptation.if_one_suffices is not None:
        request = with_strongest(request, rows)
    return recipe, request


def alternative(recipe: Recipe, request: Request) -> tuple[Recipe, Request]:
    """The recipe to continue with if one attribute suffices, and the request that it adapts to the
    rows.
    """
    other = recipe.adaptation.if_one_suffices
    assert other is not None, "only a recipe with an alternative is replaced"
    return other, in_own_size(other, request)


def in_own_size(recipe: Recipe, request: Request) -> Request:
    """The request in a recipe's own size, after the first queries of the recipe before it."""
    own = recipe.request(
        request.domain,
        request.epsilon,
        rows_per_unit=request.rows_per_unit,
        delta=request.delta,
    )
    return replace(own, preliminary=request.preliminary, preliminary_cost=request.preliminary_cost)


def sized(recipe: Recipe, request: Request, classes: Integers) -> Request:
    """The request with trees, depth and bins for these class counts."""
    assert recipe.adaptation.size is not None, "a recipe that counts the rows adapts to them"
    return recipe.adaptation.size(classes, request)


def plans(recipe: Recipe, request: Request, sizes: Iterable[int] = SIZES) -> Iterator[Plan]:
    """The plan of each phase, and those that it may become, by the size of the table."""
    for phase in recipe.phases(request):
        yield recipe.plan(phase)
        if recipe.adaptation.counts_rows:
            for rows in sizes:
                yield from _adapted_plans(recipe, phase, rows)


def _adapted_plans(recipe: Recipe, phase: Request, rows: int) -> Iterator[Plan]:
    """The plans that a phase may become for a table of that size."""
    classes = len(phase.domain.classes)
    counts = np.full(classes, rows // classes)
    counted = with_second_count(recipe, phase, counts)
    successor, chosen = choose_successor(recipe, counted, counts)
    yield successor.plan(sized(successor, chosen, counts))
    if Plan(chosen.preliminary).query(STRONGEST) is None:
        return
    if successor.adaptation.if_one_suffices is not None:
        successor, chosen = alternative(successor, chosen)
        yield successor.plan(sized(successor, chosen, counts))
    yield successor.plan(sized(successor, replace(chosen, misclassified=0), counts))
