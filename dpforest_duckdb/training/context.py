"""What a run knows between two of its queries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.recipes import adaptation
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request, TrainingContext


@dataclass(frozen=True)
class RunContext(TrainingContext):
    """The training context with the whole recipe, which the run needs and a learner does not.

    `unsized` is the request before the recipe adapted it to the rows; None if it does not.
    """

    recipe: Recipe
    unsized: Request | None = None


def sized(context: RunContext, request: Request, classes: Integers) -> RunContext:
    """The context with the plan that the recipe makes of a request and these class counts."""
    settled = adaptation.sized(context.recipe, request, classes)
    context.accountant.replan(context.recipe.plan(settled))
    return replace(context, request=settled, unsized=request)
