"""The phases of a run, after its debit: preliminary steps, then the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.progress import Event, Observer, Phase
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Grown, Request
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary import PRELIMINARY_STEPS
from dpforest_duckdb.training.reading import Reader
from dpforest_duckdb.tree import Tree


@dataclass(frozen=True)
class Phases:
    """The phases of a run on the snapshot that `reader` reads.

    Each has an accountant of its own, which refuses what its plan does not have.
    """

    reader: Reader
    recipe: Recipe
    observe: Observer

    def context(self, request: Request) -> RunContext:
        """The context of a phase, with what follows from its preliminary steps."""
        plan = self.recipe.plan(request)
        accountant = Accountant(plan, plan.debit(request.epsilon), request.delta)
        context = RunContext(self.recipe, request, accountant, self.reader.randomness, self.observe)
        for step in PRELIMINARY_STEPS:
            if step.planned(context):
                self.observe(Event(step.phase))
                context = step.adapt(self.reader, context)
        return context

    def grown(self, context: RunContext, before: Sequence[Tree], *, last: bool) -> Grown:
        """The trees that a phase releases, after the trees `before`.

        If attributes were drawn before, only these are encoded.
        """
        reader, recipe, request = self.reader, context.recipe, context.request.restricted_to_drawn()
        self.observe(Event(Phase.ENCODE))
        second = self.recipe.second
        coding = Coding(
            request.domain,
            reader.unit,
            trees=recipe.learner.trees_at_once(request),
            sample=recipe.rows,
            salt=reader.randomness.salt,
            first_phase=before,
            misclassified_weight=1 if second is None else second.misclassified_weight,
        )
        with reader.encoded(coding, likely_rows=request.rows, last=last) as coded:
            grown = recipe.learner.grow(coded, replace(context, request=request))
        if context.request.drawn:
            trees = [tree.renumbered(context.request.drawn) for tree in grown.trees]
            grown = replace(grown, trees=trees)
        return grown
