"""How recipe and request follow from noisy figures of the rows.

A run asks for them in its preliminary steps (`training.preliminary`). A dry run, and the checks
before the debit, use the same functions with made-up figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.privacy.measure import PURE_DP
from dpforest_duckdb.privacy.plan import ROW_COUNTS, Plan, PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.bounds_queries import with_check
from dpforest_duckdb.recipes.recipe import Adaptation, Recipe
from dpforest_duckdb.recipes.row_count_queries import count_queries
from dpforest_duckdb.recipes.strongest_query import (
    strongest_cost,
    strongest_is_cheap,
    with_strongest,
)
from dpforest_duckdb.request import Request

# table sizes at which adapted plans are checked before the debit
SIZES = (0, *(10**digits for digits in range(2, 19, 2)))
DENSE = tuple(2**power for power in range(7, 41))  # those at which we look for a plan with a δ


@dataclass(frozen=True)
class Adapted:
    """What follows from figures of the rows: the recipe to continue with, and its request.

    `unsized` is the request before the recipe sizes it by `classes[class]`, the counts of all rows.
    These are noisy, or true in a published form that takes them as public.
    """

    recipe: Recipe
    unsized: Request
    classes: Integers

    @property
    def rows(self) -> int:
        """The number of rows, at least 1."""
        return max(int(self.classes.sum()), 1)

    @property
    def request(self) -> Request:
        """The request with trees, depth and bins."""
        return sized(self.recipe, self.unsized, self.classes)

    @property
    def plan(self) -> Plan:
        """The queries of the request."""
        return self.recipe.plan(self.request)


def adapted(recipe: Recipe, request: Request, classes: Integers) -> Adapted:
    """What follows once `classes[class]`, counts of all rows, are known.

    The request gets the queries that the recipe asks next: the check of bounds, and how many rows
    the strongest attribute classifies wrongly. In a run it has those that counted the rows;
    otherwise it gets these too.
    """
    request = with_second_count(recipe, request, classes)
    rows = max(int(classes.sum()), 1)
    adaptation = recipe.adaptation
    if adaptation.successor is not None:
        recipe = adaptation.successor(request.counted(classes))
        adaptation = recipe.adaptation
        if not adaptation.keeps_size:
            request = in_own_size(recipe, request)
    if adaptation.private_bounds:
        request = with_check(request, rows, adaptation.measure(request))
    if cost := _strongest_cost(adaptation, request.counted(classes)):
        request = with_strongest(request, cost)
    return Adapted(recipe, request, classes)


def _strongest_cost(adaptation: Adaptation, request: Request) -> int:
    """What the query "strongest" costs, in nano-ε; 0 if it is not asked."""
    if adaptation.if_one_suffices is not None:
        return adaptation.if_one_suffices.cost(request)
    several = len(request.domain.classes) > 2 and request.trees > 1
    if adaptation.queries_strongest and several and strongest_is_cheap(request):
        return strongest_cost(request)
    return 0


def with_second_count(recipe: Recipe, request: Request, classes: Integers) -> Request:
    """The request with the queries that count the rows, by the noisy `classes[class]` of a first
    count.

    The same request if the recipe counts them once, or if it has these queries already.
    """
    if recipe.plan(request).query(Purpose.ROWS_AGAIN) is None:
        return request
    return replace(request, preliminary=count_queries(request, classes))


def with_misclassified(found: Adapted, wrong: int) -> Adapted:
    """What follows from the noisy number of rows that the strongest attribute classifies wrongly.

    That is a request with the number, for the recipe in `if_one_suffices` if there is one. But then
    nothing follows unless one attribute suffices, all costs so far are in ε, and at least half of ε
    is left.
    """
    recipe, request = found.recipe, replace(found.unsized, misclassified=wrong)
    other = recipe.adaptation.if_one_suffices
    if other is None:
        return replace(found, unsized=request)
    if not other.suffices(request.counted(found.classes)) or not _costs_epsilon(
        request.preliminary
    ):
        return found
    charged = _charged(in_own_size(other.recipe, request))
    if charged.epsilon < charged.preliminary_cost:
        return found
    return replace(found, recipe=other.recipe, unsized=replace(charged, misclassified=wrong))


def _costs_epsilon(queries: Iterable[PlannedQuery]) -> bool:
    """Whether all costs are in ε, so that a recipe with costs in ε may follow."""
    return all(query.measure == PURE_DP for query in queries)


def _charged(request: Request) -> Request:
    """The request with all of its preliminary costs taken off ε, except those of the row counts,
    which plans take off.

    A recipe with costs in μ² leaves other preliminary costs to its plan, too.
    """
    others = [query for query in request.preliminary if query.purpose not in ROW_COUNTS]
    cost = sum(query.total for query in others)
    whole = request.epsilon + request.preliminary_cost
    return replace(request, epsilon=whole - cost, preliminary_cost=cost)


def in_own_size(recipe: Recipe, request: Request) -> Request:
    """The request in a recipe's own size, after the first queries of the recipe before it."""
    usual = recipe.request(
        request.domain,
        request.epsilon,
        rows_per_unit=request.rows_per_unit,
        delta=request.delta,
    )
    return replace(
        usual, preliminary=request.preliminary, preliminary_cost=request.preliminary_cost
    )


def sized(recipe: Recipe, request: Request, classes: Integers) -> Request:
    """The request with trees, depth and bins for these class counts `[class]`."""
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
    found = adapted(recipe, phase, counts)
    yield found.plan
    if Plan(found.unsized.preliminary).query(Purpose.STRONGEST) is not None:
        for wrong in (0, found.rows):
            yield with_misclassified(found, wrong).plan
