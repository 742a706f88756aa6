"""The noisy number of rows that the strongest attribute alone classifies wrongly."""

from __future__ import annotations

from dpforest_duckdb.learners.strongest_attribute import coarse, coarse_bins, misclassified
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.recipes.adaptation import with_misclassified
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary.step import Step, has_query, in_most_cells
from dpforest_duckdb.training.reading import Reader


def _adapt(reader: Reader, context: RunContext) -> RunContext:
    """The context with what follows from that number of rows."""
    found, request, accountant = context.counted, context.counted.unsized, context.accountant
    private = reader.tables(coarse(request.domain))
    noise, k = context.randomness.noise, request.rows_per_unit
    wrong = misclassified(private, accountant.spend(Purpose.STRONGEST), k, noise)
    return context.after(with_misclassified(found, wrong))


STRONGEST_ATTRIBUTE = Step(
    Phase.COMPARE_ATTRIBUTES,
    planned=has_query(Purpose.STRONGEST),
    adapt=_adapt,
    may_be_planned=lambda each: each.queries_strongest or each.if_one_suffices is not None,
    domains=lambda public: [in_most_cells(public, coarse_bins(public))],
)
