"""Narrower bounds of numeric attributes, where the public ones are far too wide."""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.domain.bin_edges import DEFAULT_BINS
from dpforest_duckdb.learners.private_bounds import BOUNDS_TURNS, Search, too_wide
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.recipes.bounds_queries import window, with_windows
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary.step import Step, has_query, numbers_in_most_cells
from dpforest_duckdb.training.reading import Reader


def _adapt(reader: Reader, context: RunContext) -> RunContext:
    """The context with narrower bounds, if a noisy check finds the public ones far too wide."""
    found = context.counted
    request, n, measure = found.unsized, found.rows, found.recipe.adaptation.measure(found.unsized)
    accountant, randomness, k = context.accountant, context.randomness, request.rows_per_unit
    search = Search.start(request.domain)
    counts = reader.cell_counts(search.bins)
    if not too_wide(search.bins, counts, n, accountant.spend(Purpose.BOUNDS), k, randomness.noise):
        return context
    for turn in range(1, BOUNDS_TURNS + 1):
        further = with_windows(request, turn, len(search.open), n, measure)
        if further is None:
            break
        request, context = further, context.after(replace(found, unsized=further))
        if turn > 1:
            counts = reader.cell_counts(search.bins)
        cost = accountant.spend(window(turn), times=len(search.open))
        search = search.turn(counts, cost, measure, k, randomness.bits)
        if not search.open:
            break
    return context.after(replace(found, unsized=replace(request, domain=search.domain)))


NARROWER_BOUNDS = Step(
    Phase.CHECK_BOUNDS,
    planned=has_query(Purpose.BOUNDS),
    adapt=_adapt,
    may_be_planned=lambda adaptation: adaptation.private_bounds,
    domains=lambda public: numbers_in_most_cells(public, DEFAULT_BINS) * BOUNDS_TURNS,
)
