"""The tables of coded rows that a run may need: public facts that bound the temporary space."""

from __future__ import annotations

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.bin_edges import DEFAULT_BINS
from dpforest_duckdb.engine.base import CodedTable
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.training.preliminary import PRELIMINARY_STEPS
from dpforest_duckdb.training.preliminary.step import in_most_cells


def coded_tables(recipe: Recipe, request: Request, unit: PrivacyUnit) -> list[CodedTable]:
    """The tables that the phases of a run may code, in order; the last trees grow in the last one.

    The rows decide which of them are coded, so here all of them are. Those with all rows of a
    domain without numbers are alike: its cells are the same in every phase.
    """

    def alike(domain: Domain) -> tuple[Domain, PrivacyUnit] | None:
        return None if domain.has_numbers else (domain, unit)

    found: list[CodedTable] = []
    phases = recipe.phases(request)
    for number, phase in enumerate(phases):
        *counted, grown = _domains(recipe, phase)
        found += [CodedTable(domain, alike=alike(domain)) for domain in counted]
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
                alike=alike(grown) if recipe.rows == "all" and not number else None,
            )
        )
    return found


def _domains(recipe: Recipe, request: Request) -> list[Domain]:
    """A domain for each time that a phase may code the rows; trees grow in the last one."""
    public = request.domain
    adaptations = [each.adaptation for each in (recipe, *recipe.adaptation.successors)]
    found = []
    for step in PRELIMINARY_STEPS:
        if any(map(step.may_be_planned, adaptations)):
            found += step.domains(public)
    return [*found, in_most_cells(public, DEFAULT_BINS)]
