"""Bins of numeric attributes at private medians."""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.learners.private_bins import FINEST, cut_at_medians, on_the_grid
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary.step import Step, has_query, numbers_in_most_cells
from dpforest_duckdb.training.reading import Reader


def _adapt(reader: Reader, context: RunContext) -> RunContext:
    """The context with these bins."""
    counts = reader.cell_counts(on_the_grid(context.request.domain))
    bits = context.randomness.bits
    request = cut_at_medians(counts, context.request, context.accountant, bits)
    return replace(context, request=request)


MEDIAN_BINS = Step(
    Phase.CHOOSE_BINS,
    planned=has_query(Purpose.BINS),
    adapt=_adapt,
    may_be_planned=lambda adaptation: adaptation.cuts_at_medians,
    domains=lambda public: numbers_in_most_cells(public, FINEST),
)
