"""The phases of a run, after its debit: what each one queries, in this order, and how it adapts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import CodedRows, Coding, Snapshot
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners.candidate_bins import in_windows
from dpforest_duckdb.learners.informative_tables import draw_in_bins
from dpforest_duckdb.learners.private_bins import MEDIANS, cut_at_medians, on_the_grid
from dpforest_duckdb.learners.private_bounds import TURNS, Search, too_wide
from dpforest_duckdb.learners.strongest_attribute import coarse, misclassified
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.plan import AGAIN, ROWS, PlanError
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.progress import Event, Observer, Phase
from dpforest_duckdb.recipes.bounds_queries import BOUNDS, window, with_windows
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.recipes.strongest_query import STRONGEST
from dpforest_duckdb.request import Grown, Request, TrainingContext
from dpforest_duckdb.tree import Tree


@dataclass(frozen=True)
class Phases:
    """What the phases of a run read of its snapshot. An accountant checks each by its plan."""

    rows: Snapshot
    recipe: Recipe
    unit: PrivacyUnit
    randomness: Randomness
    observe: Observer

    def context(self, request: Request) -> RunContext:
        """The context of a phase, with what follows from its first queries.

        The number of rows sets recipe, trees and depth. Bounds that are far too wide get narrower.
        By the rows that one attribute classifies wrongly, another recipe may follow, or fewer
        attributes are used. Private medians set the bins, or attributes are drawn with their bins.
        """
        plan = self.recipe.plan(request)
        accountant = Accountant(plan, plan.debit(request.epsilon), request.delta)
        context = RunContext(self.recipe, request, accountant, self.randomness, self.observe)
        if self.recipe.counts_rows:
            self.observe(Event(Phase.COUNT_ROWS))
            context = adapted(self._class_counts(request.domain), context)
        if accountant.plan.query(BOUNDS):
            self.observe(Event(Phase.CHECK_BOUNDS))
            context = self._with_private_bounds(context)
        if accountant.plan.query(STRONGEST):
            self.observe(Event(Phase.COMPARE_ATTRIBUTES))
            context = self._with_strongest(context)
        if accountant.plan.query(MEDIANS):
            self.observe(Event(Phase.CHOOSE_BINS))
            counts = self._cell_counts(on_the_grid(context.request.domain))
            next_request = cut_at_medians(counts, context.request, accountant, self.randomness.bits)
            context = replace(context, request=next_request)
        if context.recipe.draws_bins_for(context.request):
            context = self._with_drawn(context)
        return context

    def _with_private_bounds(self, context: RunContext) -> RunContext:
        """The context with narrower bounds, if the public ones are far too wide."""
        request, classes = context.unsized, np.array(context.request.histogram)  # noisy
        assert request is not None, "the recipe adapts to the rows"
        n, measure = max(int(classes.sum()), 1), context.recipe.measure(request)
        accountant, randomness, k = context.accountant, context.randomness, request.rows_per_unit
        search = Search.start(request.domain)
        counts = self._cell_counts(search.bins)
        if not too_wide(search.bins, counts, n, accountant.spend(BOUNDS), k, randomness.noise):
            return context
        for turn in range(1, TURNS + 1):
            further = with_windows(request, turn, len(search.open), n, measure)
            if further is None:
                break
            request, context = further, sized(context, further, classes)
            if turn > 1:
                counts = self._cell_counts(search.bins)
            cost = accountant.spend(window(turn), times=len(search.open))
            search = search.turn(counts, cost, measure, k, randomness.bits)
            if not search.open:
                break
        return sized(context, replace(request, domain=search.domain), classes)

    def _with_strongest(self, context: RunContext) -> RunContext:
        """The context with the noisy number of rows that the strongest attribute misclassifies.

        If these are less than half of all rows, the recipe in `if_one_suffices` follows. Otherwise
        a recipe with an `if_one_suffices` continues unchanged, and does not use the number.
        """
        request, accountant = context.unsized, context.accountant
        assert request is not None, "the recipe adapts to the rows"
        with self._encoded(self._all_rows(coarse(request.domain))) as coded:
            private = [table[0] for table in coded.count_classes(0, 1)]
        noise, k = context.randomness.noise, request.rows_per_unit
        wrong = misclassified(private, accountant.spend(STRONGEST), k, noise)
        recipe, classes = context.recipe, np.array(context.request.histogram)  # noisy
        if recipe.if_one_suffices is not None:
            if 2 * wrong >= classes.sum():
                return context
            recipe, request = recipe.alternative(request)
        request = replace(request, misclassified=wrong)
        return sized(replace(context, recipe=recipe), request, classes)

    def _with_drawn(self, context: RunContext) -> RunContext:
        """The context with the attributes that are drawn, each in the bins that it is drawn in."""
        request = context.request
        assert context.unsized is not None, "the recipe adapts to the rows"
        candidates = in_windows(request.domain, context.unsized.domain)
        self.observe(Event(Phase.CHOOSE_BINS))
        coding = self._all_rows(candidates.counted)
        with self._encoded(coding, likely_rows=request.rows) as coded:
            private = [table[0] for table in coded.count_classes(0, 1)]
            drawn = draw_in_bins(coded, private, candidates, context)
        domain, numbers = candidates.in_bins(drawn), tuple(one.number for one in drawn)
        return replace(context, request=replace(request, domain=domain, drawn=numbers))

    def grown(self, context: RunContext, before: Sequence[Tree], *, last: bool) -> Grown:
        """The trees that a phase releases, after the trees `before`.

        If attributes were drawn before, only these are encoded.
        """
        self.observe(Event(Phase.ENCODE))
        recipe, request = context.recipe, context.request.of_drawn()
        second = self.recipe.second
        coding = Coding(
            request.domain,
            self.unit,
            trees=recipe.learner.node_columns(request),
            sample=recipe.rows,
            salt=self.randomness.salt,
            first_phase=before,
            misclassified_weight=1 if second is None else second.misclassified_weight,
        )
        with self._encoded(coding, likely_rows=request.rows, last=last) as coded:
            grown = recipe.learner.grow(coded, replace(context, request=request))
        if context.request.drawn:
            trees = [tree.renumbered(context.request.drawn) for tree in grown.trees]
            grown = replace(grown, trees=trees)
        return grown

    def _all_rows(self, domain: Domain) -> Coding:
        """The coding of all rows at one node."""
        return Coding(domain, self.unit, trees=1, sample="all", salt=self.randomness.salt)

    def _class_counts(self, domain: Domain) -> Integers:
        """The private class counts of all rows; coding one attribute is enough for them."""
        narrow = replace(domain, attributes=domain.attributes[:1])
        with self._encoded(self._all_rows(narrow)) as coded:
            counts: Integers = coded.count_leaves(0, 1)[0]
            return counts

    def _cell_counts(self, domain: Domain) -> list[Integers]:
        """The private counts of each attribute's cells."""
        with self._encoded(self._all_rows(domain)) as coded:
            return [table[0].sum(axis=1) for table in coded.count_classes(0, 1)]

    @contextlib.contextmanager
    def _encoded(
        self, coding: Coding, *, likely_rows: int = 0, last: bool = False
    ) -> Iterator[CodedRows]:
        """The coded rows; dropped at the end."""
        coded = self.rows.encode(coding, likely_rows=likely_rows, last=last)
        try:
            yield coded
        except BaseException:
            # an interrupt aborts the transaction, in which nothing can be dropped; what was coded
            # then goes with the connection
            with contextlib.suppress(DpforestError):
                coded.drop()
            raise
        coded.drop()


@dataclass(frozen=True)
class RunContext(TrainingContext):
    """The training context with the whole recipe, which the run needs and a learner does not.

    `unsized` is the request before the recipe adapted it to the rows; None if it does not.
    """

    recipe: Recipe
    unsized: Request | None = None


def adapted(classes: Integers, context: RunContext) -> RunContext:
    """The context after the noisy class counts of all rows are known.

    `classes` are the private counts. A published form that takes them as public uses the true
    counts; it is not private.
    """
    recipe, request, accountant = context.recipe, context.request, context.accountant
    if accountant.plan.query(ROWS):
        classes, request = _counted(classes, context)
    elif not recipe.flaws:
        raise PlanError("only a form that is not private may use true counts")
    recipe, request = recipe.chosen(request, classes)
    return sized(replace(context, recipe=recipe), request, classes)


def _counted(private: Integers, context: RunContext) -> tuple[Integers, Request]:
    """Noisy class counts of `private` ones, and the request with the queries that they cost.

    If a first count is too noisy for the number of rows that it shows, a second one follows. Then
    the counts are means of both, weighted by their inverse variances.
    """
    recipe, accountant, noise = context.recipe, context.accountant, context.randomness.noise
    k = context.request.rows_per_unit
    first = noise.laplace(private, accountant.spend(ROWS), k)
    request = recipe.counted(context.request, first)
    accountant.replan(recipe.plan(request))
    if accountant.plan.query(AGAIN) is None:
        return first, request
    second = noise.laplace(private, accountant.spend(AGAIN), k)
    mean = np.average([first, second], axis=0, weights=accountant.plan.row_precisions(k))
    return np.rint(mean).astype(np.int64), request


def sized(context: RunContext, request: Request, classes: Integers) -> RunContext:
    """The context with the plan that the recipe makes of a request and these class counts."""
    settled = context.recipe.sized(request, classes)
    context.accountant.replan(context.recipe.plan(settled))
    return replace(context, request=settled, unsized=request)
