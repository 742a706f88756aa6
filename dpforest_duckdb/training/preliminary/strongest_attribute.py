"""The noisy number of rows that the strongest attribute alone classifies wrongly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpforest_duckdb.learners.strongest_attribute import coarse, misclassified
from dpforest_duckdb.progress import Phase
from dpforest_duckdb.recipes.adaptation import alternative
from dpforest_duckdb.recipes.strongest_query import STRONGEST
from dpforest_duckdb.training.context import RunContext, sized
from dpforest_duckdb.training.preliminary.step import Step, asks
from dpforest_duckdb.training.reading import Reader


def _adapt(reader: Reader, context: RunContext) -> RunContext:
    """The context with that number.

    If it is less than half of all rows, the recipe in `if_one_suffices` follows. Otherwise a recipe
    with an `if_one_suffices` continues unchanged, and does not use the number.
    """
    request, accountant = context.unsized, context.accountant
    assert request is not None, "the recipe adapts to the rows"
    private = reader.tables(coarse(request.domain))
    noise, k = context.randomness.noise, request.rows_per_unit
    wrong = misclassified(private, accountant.spend(STRONGEST), k, noise)
    recipe, classes = context.recipe, np.array(context.request.histogram)  # noisy
    if recipe.adaptation.if_one_suffices is not None:
        if 2 * wrong >= classes.sum():
            return context
        recipe, request = alternative(recipe, request)
    request = replace(request, misclassified=wrong)
    return sized(replace(context, recipe=recipe), request, classes)


STRONGEST_ATTRIBUTE = Step(Phase.COMPARE_ATTRIBUTES, asks(STRONGEST), _adapt)
