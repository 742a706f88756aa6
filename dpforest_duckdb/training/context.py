"""What a run knows between two of its queries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpforest_duckdb.recipes.adaptation import Adapted
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import TrainingContext


@dataclass(frozen=True)
class RunContext(TrainingContext):
    """The training context with the whole recipe, which the run needs and a learner does not.

    `adapted` is what recipe and request follow from; None before the rows are counted.
    """

    recipe: Recipe
    adapted: Adapted | None = None

    @property
    def counted(self) -> Adapted:
        """What recipe and request follow from, for the steps after the counts of the rows."""
        assert self.adapted is not None, "the rows are counted first"
        return self.adapted

    def after(self, found: Adapted) -> RunContext:
        """The context with the recipe and the request that follow, and the plan of both."""
        request = found.request
        self.accountant.replan(found.recipe.plan(request))
        return replace(self, recipe=found.recipe, request=request, adapted=found)
