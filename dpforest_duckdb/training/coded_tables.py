"""The tables of coded rows that a run may need: public facts that bound the temporary space."""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.bin_edges import DEFAULT_BINS
from dpforest_duckdb.engine.base import CodedTable
from dpforest_duckdb.learners.private_bins import FINEST, to_be_cut
from dpforest_duckdb.learners.private_bounds import TURNS
from dpforest_duckdb.learners.strongest_attribute import coarse_bins
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request


def coded_tables(recipe: Recipe, request: Request) -> list[CodedTable]:
    """The tables that the phases of a run may code, in order; the last trees grow in the last one.

    The rows decide which of them are coded, so here all of them are.
    """
    found: list[CodedTable] = []
    phases = recipe.phases(request)
    for number, phase in enumerate(phases):
        *counted, grown = _domains(recipe, phase)
        found += map(CodedTable, counted)
        rows = 1
        if number and recipe.second is not None:
            rows = recipe.second.misclassified_weight
        drawn = recipe.rows == "bootstrap"
        found.append(
            CodedTable(
                grown,
                rows=phase.trees if drawn else rows,
                by_tree=recipe.rows != "all",
                # a row is drawn more often the more trees of the first phase are wrong
                numbered=(phases[0].trees if number else 1) if drawn else 0,
                routed=phase.deepest if phase is not phases[-1] else 0,
            )
        )
    return found


def _domains(recipe: Recipe, request: Request) -> list[Domain]:
    """A domain for each time that a phase may code the rows; trees grow in the last one.

    Each has about as many cells as what is coded, or more; it can lack one where bounds are very
    narrow for their size. The rows decide what is coded, so here everything is: all turns of
    narrower bounds, with all numeric attributes, and the finest bins.
    """
    public = request.domain
    adaptations = [each.adaptation for each in (recipe, *recipe.adaptation.successors)]
    found = []
    if recipe.adaptation.counts_rows:
        found.append(replace(public, attributes=public.attributes[:1]))
    numbers = to_be_cut(public)
    by_rows = bool(numbers) and any(each.private_bounds or each.draws_bins for each in adaptations)
    if by_rows:
        found += [_cut(replace(public, attributes=tuple(numbers)), DEFAULT_BINS)] * TURNS
    if any(each.asks_strongest or each.if_one_suffices for each in adaptations):
        found.append(_cut(public, coarse_bins(public)))
    if by_rows:
        found.append(_cut(public, FINEST))
    return [*found, _cut(public, DEFAULT_BINS)]


def _cut(domain: Domain, bins: int) -> Domain:
    """The domain with as many cells as it can have in about that many bins within its bounds.

    The mixed scale has one bin more at most. Narrower bounds do not give more bins than linear ones
    here, even of whole numbers.
    """
    return domain.recut(bins + 1, "linear")
