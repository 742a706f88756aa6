"""The noisy number of rows of each class, from which recipe, trees, depth and bins follow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.privacy.plan import PlanError
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.recipes.adaptation import adapted, with_second_count
from dpforest_duckdb.request import Request
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary.step import Step
from dpforest_duckdb.training.reading import Reader


def after_counts(private: Integers, context: RunContext) -> RunContext:
    """The context after the noisy class counts of all rows are known, from `private[class]`.

    A published form that takes the `private` counts as public uses these; it is not private. Raises
    `PlanError` if any other recipe has no query for them.
    """
    classes, request = private, context.request
    if context.accountant.plan.query(Purpose.ROWS):
        classes, request = counted(private, context)
    elif not context.recipe.flaws:
        raise PlanError("only a form that is not private may use true counts")
    return context.after(adapted(context.recipe, request, classes))


def counted(private: Integers, context: RunContext) -> tuple[Integers, Request]:
    """Noisy class counts of `private[class]`, and the request with the queries that they cost.

    If a first count is too noisy for the number of rows that it shows, a second one follows. Then
    the counts are means of both, weighted by their inverse variances.
    """
    recipe, accountant, noise = context.recipe, context.accountant, context.randomness.noise
    k = context.request.rows_per_unit
    first = noise.laplace(private, accountant.spend(Purpose.ROWS), k)
    request = with_second_count(recipe, context.request, first)
    accountant.replan(recipe.plan(request))
    if accountant.plan.query(Purpose.ROWS_AGAIN) is None:
        return first, request
    second = noise.laplace(private, accountant.spend(Purpose.ROWS_AGAIN), k)
    mean = np.average([first, second], axis=0, weights=accountant.plan.row_precisions(k))
    return np.rint(mean).astype(np.int64), request


def _adapt(reader: Reader, context: RunContext) -> RunContext:
    """The context after the rows of each class are counted."""
    return after_counts(reader.class_counts(_coded(context.request.domain)), context)


def _coded(domain: Domain) -> Domain:
    """The domain of the rows whose classes are counted.

    Without numbers, whose bins may follow from the counts, it is the whole domain: then the rows
    are coded once for all. Otherwise one attribute is enough.
    """
    return replace(domain, attributes=domain.attributes[:1]) if domain.has_numbers else domain


ROW_COUNTS = Step(
    Phase.COUNT_ROWS,
    planned=lambda context: context.recipe.adaptation.counts_rows,
    adapt=_adapt,
    may_be_planned=lambda adaptation: adaptation.counts_rows,
    domains=lambda public: [_coded(public)],
)
