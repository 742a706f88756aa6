"""Attributes that are drawn together with their bins."""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.learners.candidate_bins import in_windows
from dpforest_duckdb.learners.informative_tables import draw_in_bins
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary.step import Step
from dpforest_duckdb.training.reading import Reader


def _adapt(reader: Reader, context: RunContext) -> RunContext:
    """The context with the attributes that are drawn, each in the bins that it is drawn in."""
    request = context.request
    candidates = in_windows(request.domain, context.counted.unsized.domain)
    coding = reader.all_rows(candidates.counted)
    with reader.encoded(coding, likely_rows=request.rows) as coded:
        private = [table[0] for table in coded.count_classes(0, 1)]
        drawn = draw_in_bins(coded, private, candidates, context)
    domain, numbers = candidates.in_bins(drawn), tuple(one.number for one in drawn)
    return replace(context, request=replace(request, domain=domain, drawn=numbers))


DRAWN_BINS = Step(
    Phase.CHOOSE_BINS, lambda context: context.recipe.draws_bins_for(context.request), _adapt
)
