"""Attributes that are drawn together with their bins."""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.bin_edges import DEFAULT_BINS
from dpforest_duckdb.engine.base import tables_of_all
from dpforest_duckdb.learners.candidate_bins import GRID, in_windows, worth_drawing
from dpforest_duckdb.learners.informative_tables import draw_in_bins
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary.step import Step, in_most_cells
from dpforest_duckdb.training.reading import Reader


def _adapt(reader: Reader, context: RunContext) -> RunContext:
    """The context with the attributes that are drawn, each in the bins that it is drawn in."""
    request = context.request
    candidates = in_windows(request.domain, context.counted.unsized.domain)
    coding = reader.all_rows(candidates.counted)
    with reader.encoded(coding, likely_rows=request.rows) as coded:
        private = tables_of_all(coded)
        drawn = draw_in_bins(coded, private, candidates, context)
    domain, numbers = candidates.in_bins(drawn), tuple(one.number for one in drawn)
    return replace(context, request=replace(request, domain=domain, drawn=numbers))


def _domains(public: Domain) -> list[Domain]:
    """In the cuts of the grid, and in those of each attribute's own bins."""
    return [in_most_cells(public, GRID + DEFAULT_BINS)] if worth_drawing(public) else []


DRAWN_BINS = Step(
    Phase.CHOOSE_BINS,
    planned=lambda context: context.recipe.draws_bins_for(context.request),
    adapt=_adapt,
    may_be_planned=lambda adaptation: adaptation.draws_bins,
    domains=_domains,
)
