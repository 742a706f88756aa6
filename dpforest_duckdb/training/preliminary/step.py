"""A preliminary step of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.learners.private_bins import to_be_cut
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.recipes.recipe import Adaptation
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.reading import Reader


@dataclass(frozen=True)
class Step:
    """Queries before trees grow: `planned` says whether a context has them, `adapt` asks them.

    `adapt` returns the context with what follows from the noisy answers. `phase` names the step in
    progress messages.

    Two public facts bound the temporary space. `may_be_planned` says whether a recipe with that
    adaptation can have the queries. `domains` gives, from a public domain, one for each time that
    `adapt` may code the rows. It has about as many cells as what is coded, or more; it can lack one
    where bounds are very narrow for their size.
    """

    phase: Phase
    planned: Callable[[RunContext], bool]
    adapt: Callable[[Reader, RunContext], RunContext]
    may_be_planned: Callable[[Adaptation], bool]
    domains: Callable[[Domain], list[Domain]]


def has_query(purpose: Purpose) -> Callable[[RunContext], bool]:
    """Whether the plan of a context has a query."""
    return lambda context: context.accountant.plan.query(purpose) is not None


def in_most_cells(domain: Domain, bins: int) -> Domain:
    """The domain with as many cells as it can have in about that many bins within its bounds.

    The mixed scale has one bin more at most. Narrower bounds do not give more bins than linear ones
    here, even of whole numbers.
    """
    return domain.recut(bins + 1, "linear")


def numbers_in_most_cells(domain: Domain, bins: int) -> list[Domain]:
    """As `in_most_cells`, for the numeric attributes alone whose bins the domain does not set; no
    domain if there are none.
    """
    numbers = tuple(to_be_cut(domain))
    return [in_most_cells(replace(domain, attributes=numbers), bins)] if numbers else []
