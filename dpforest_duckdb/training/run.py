"""A run: debit, phases, finished forest. This file alone orders the steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import CodedRows, Coding, Engine, Snapshot
from dpforest_duckdb.errors import (
    BudgetError,
    DpforestError,
    PublicFactWarning,
    UnrecordedWarning,
    after_debit,
    warn,
)
from dpforest_duckdb.learners.candidate_bins import in_windows
from dpforest_duckdb.learners.informative_tables import draw
from dpforest_duckdb.learners.private_bins import MEDIANS, on_the_grid, recut
from dpforest_duckdb.learners.private_bounds import TURNS, Search, too_wide
from dpforest_duckdb.learners.strongest_attribute import coarse, misclassified
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.datasets import AnyAccount, DatasetAccount
from dpforest_duckdb.ledger.entries import Outcome, outcome
from dpforest_duckdb.model import store
from dpforest_duckdb.model.doubts import doubts
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.model.json_format import fingerprint
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, show
from dpforest_duckdb.privacy.plan import AGAIN, ROWS, Plan, PlanError, PlannedQuery
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.progress import Event, Observer, Phase, TextObserver, as_text, unobserved
from dpforest_duckdb.recipes.bounds_queries import CHECK, window, with_windows
from dpforest_duckdb.recipes.plans import count_queries
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.recipes.strongest_query import STRONGEST
from dpforest_duckdb.request import Grown, Request, TrainingContext
from dpforest_duckdb.training.coded_tables import coded_tables
from dpforest_duckdb.tree import Guarantee, Tree
from dpforest_duckdb.version import __version__

NOT_CLOSED = (
    "The debit is in the ledger, but not which model it made: this failed. So evaluate takes the "
    "model for one that no private run made."
)
SEEDED = "The noise comes from a seed and can be repeated."


@dataclass(frozen=True)
class Run:
    """A training run that is planned and checked, and has not read any row.

    Everything in it is public; `notes` are sentences about it. `unused_columns` are neither
    attributes, target, privacy unit nor identifiers. `rows_at_most` is a public upper bound on the
    table's rows. `execute` debits the whole cost, then reads the rows.
    """

    engine: Engine
    account: AnyAccount
    table: TableInfo
    recipe: Recipe
    request: Request
    plan: Plan
    unit: PrivacyUnit
    randomness: Randomness
    name: str | None
    replace: bool
    leaks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unused_columns: tuple[str, ...] = ()
    rows_at_most: int | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the forest is not private; none if it is. `leaks` are what the caller states."""
        return self.leaks + self.recipe.flaws + (() if self.randomness.private else (SEEDED,))

    @property
    def cost(self) -> int:
        """The debit in nano-ε: the requested ε, or what a published form really spends if that is
        more.
        """
        return max(self.plan.epsilon, self.request.epsilon)

    @property
    def delta(self) -> int:
        """The debit in atto-δ: the requested δ if a plan of the recipe uses one, else 0."""
        return self.request.delta

    @property
    def bytes_of_a_row(self) -> int:
        """The most temporary space per row, in memory or on disk, from public facts."""
        return self._bytes_of_a_row()

    def _bytes_of_a_row(self, before: Sequence[Run] = ()) -> int:
        learners = [recipe.learner for recipe in (self.recipe, *self.recipe.successors)]
        copies = max(learner.node_columns(self.request) for learner in learners)
        scores = max(learner.score_columns(self.request) for learner in learners)
        several = self.shares_rows or any(learner.compares_trees for learner in learners)
        unit = self.unit.column
        return self.engine.bytes_of_a_row(
            coded_tables(self.recipe, self.request),
            unit=None if unit == "row" else self.table.columns[unit],
            copies=copies if several else 1,
            scores=scores,
            before=[table for run in before for table in coded_tables(run.recipe, run.request)],
        )

    def refuse_if_too_large(self, before: Sequence[Run] = ()) -> None:
        """Raise `DpforestError` if `rows_at_most` rows may not fit into memory and temporary disk,
        after runs `before` on the same snapshot.
        """
        if self.rows_at_most is None:
            return
        needed = self.rows_at_most * self._bytes_of_a_row(before)
        if needed > self.engine.room():
            size = f"{needed / 1e9:,.1f} GB" if needed >= 1e9 else f"{needed / 1e6:,.1f} MB"
            raise DpforestError(
                f"{self.rows_at_most:,} rows may need {size} of temporary space, "
                "more than is available: raise --memory-limit, free some disk, or name a larger "
                "--temp-dir."
            )

    @property
    def budget_follows_paths(self) -> bool:
        """Whether the rows are files that are known by their paths alone."""
        account = self.account
        return isinstance(account, DatasetAccount) and account.dataset is None

    @property
    def shares_rows(self) -> bool:
        """Whether every tree sees all rows, and so needs its own column of nodes."""
        return self.recipe.rows == "all"

    def execute(
        self, progress: TextObserver | None = None, *, observe: Observer = unobserved
    ) -> Forest:
        """Debit, count, draw, finish and store. Raises `DpforestError`; a debit stays spent.

        `observe` gets the event at the start of each step, `progress` its text.
        """
        if progress is not None:
            observe = as_text(progress)
        self.engine.refuse_unseen(self.table)
        with self.engine.snapshot(self.table) as rows:
            return self.execute_on(rows, observe)

    def execute_on(self, rows: Snapshot, observe: Observer = unobserved) -> Forest:
        """`execute` on a snapshot of the table, which several runs may share."""
        observe(Event(Phase.DEBIT))
        run = self.account.debit(
            self.cost,
            self.delta,
            self.unit,
            recipe=self.recipe.label,
            model=self.name or "",
            private=not self.reasons,
            plan=[asdict(query) for query in self.plan.queries],
        )
        try:
            self.account.refuse_other(run, rows.table_seen())
            forest = self._grown_forest(rows, observe)
            if self.name is not None:
                observe(Event(Phase.STORE))
                forest = store.keep(self.engine.models, forest, replace=self.replace)
        except store.NotStoredError as error:
            self._close(run, "done", error.forest)
            raise
        except DpforestError as error:
            self._close(run, outcome(error))
            raise after_debit(error) from None
        except BaseException as error:
            self._close(run, outcome(error))
            raise
        self._close(run, "done", forest)
        with contextlib.suppress(UserWarning):  # where warnings are errors: the forest is paid for
            for doubt in doubts(forest):
                warn(doubt, PublicFactWarning)
        return forest

    def _close(self, run: tuple[int, ...], state: Outcome, forest: Forest | None = None) -> None:
        """Record how a run ended, and the hash of a private forest; a failure changes no debit."""
        made = "" if self.reasons or forest is None else fingerprint(forest)
        try:
            self.account.close_run(run, state, made)
        except DpforestError:
            if made:
                with contextlib.suppress(UserWarning):
                    warn(NOT_CLOSED, UnrecordedWarning)

    def check(self, chain: Chain) -> None:
        """Raise `BudgetError` if the budget would refuse `execute` after the entries of `chain`.

        The run is added to `chain` in memory; the ledger's file does not change.
        """
        self.account.check(chain, self.cost, self.delta, self.unit, private=not self.reasons)

    def release_uncapped(self) -> Forest:
        """The forest, without a debit or an entry in a ledger: for audits on made-up tables.

        Raises `BudgetError` for a table with a cap.
        """
        with self.engine.snapshot(self.table) as rows:
            self._refuse_cap(rows.table_seen())
            return self._grown_forest(rows, unobserved)

    def _refuse_cap(self, seen: TableInfo | None) -> None:
        if self.account.budget(seen).cap:
            raise BudgetError(
                f'Table "{self.table.display}" has a cap, and this would spend past it: execute '
                "the run."
            )
        if isinstance(self.account, DatasetAccount):
            self.account.refuse_others()

    @np.errstate(all="ignore")  # no value of a row may make a run fail, whatever np.seterr says
    def _grown_forest(self, rows: Snapshot, observe: Observer) -> Forest:
        trees: list[Tree] = []
        queries: list[PlannedQuery] = []
        limited = 0
        phases = self.recipe.phases(self.request)
        for number, phase in enumerate(phases, 1):
            context = self._phase_context(rows, phase, observe)
            grown = self._grown(rows, context, trees, last=number == len(phases))
            trees += context.recipe.finish(grown, context.request, context.account.plan)
            limited += grown.limited
            queries += context.account.plan.queries
        observe(Event(Phase.FINISH))
        return Forest(
            name=self.name or self.table.name,
            recipe=self.recipe.label,
            guarantee=self.guarantee(Plan(tuple(queries))),
            domain=context.request.domain,
            trees=tuple(trees),
            link=context.recipe.link,
            table=self.table.reference,
            version=__version__,
            voting=context.recipe.voting,
            limited=limited,
            picked="" if context.recipe.name == self.recipe.name else context.recipe.name,
        )

    def _phase_context(self, rows: Snapshot, request: Request, observe: Observer) -> RunContext:
        """The context of a phase, with what follows from its first queries.

        The number of rows sets recipe, trees and depth. Bounds that are far too wide get narrower.
        By the rows that one attribute classifies wrongly, another recipe may follow, or fewer
        attributes are used. Private medians set the bins, or attributes are drawn with their bins.
        """
        plan = self.recipe.plan(request)
        account = Accountant(plan, max(plan.epsilon, request.epsilon), request.delta)
        context = RunContext(self.recipe, request, account, self.randomness, observe)
        if self.recipe.counts_rows:
            observe(Event(Phase.COUNT_ROWS))
            context = adapted(self._class_counts(rows, request.domain), context)
        if account.plan.query(CHECK):
            observe(Event(Phase.CHECK_BOUNDS))
            context = self._with_private_bounds(rows, request, context)
        if account.plan.query(STRONGEST):
            observe(Event(Phase.COMPARE_ATTRIBUTES))
            context = self._with_strongest(rows, context)
        if account.plan.query(MEDIANS):
            observe(Event(Phase.CHOOSE_BINS))
            counts = self._cell_counts(rows, on_the_grid(context.request.domain))
            next_request = recut(counts, context.request, account, self.randomness.bits)
            context = replace(context, request=next_request)
        if context.recipe.draws_bins_for(context.request):
            context = self._with_drawn(rows, context)
        return context

    def _with_private_bounds(
        self, rows: Snapshot, public: Request, context: RunContext
    ) -> RunContext:
        """The context with narrower bounds, if those of `public` are far too wide."""
        classes = np.array(context.request.histogram)  # noisy
        public = replace(public, first=count_queries(context.request))
        recipe, request = self.recipe.chosen(public, classes)  # the same recipe as before
        n, measure = max(int(classes.sum()), 1), recipe.measure(request)
        account, randomness, k = context.account, context.randomness, request.rows_per_unit
        search = Search.start(public.domain)
        counts = self._cell_counts(rows, search.bins)
        if not too_wide(search.bins, counts, n, account.spend(CHECK), k, randomness.noise):
            return context
        for turn in range(1, TURNS + 1):
            further = with_windows(request, turn, len(search.open), n, measure)
            if further is None:
                break
            request, context = further, sized(context, further, classes)
            if turn > 1:
                counts = self._cell_counts(rows, search.bins)
            search = search.turn(counts, account.spend(window(turn)), measure, k, randomness.bits)
            if not search.open:
                break
        return sized(context, replace(request, domain=search.domain), classes)

    def _with_strongest(self, rows: Snapshot, context: RunContext) -> RunContext:
        """The context with the noisy number of rows that the strongest attribute misclassifies.

        If these are less than half of all rows, the recipe in `if_one_suffices` follows. Otherwise
        a recipe with an `if_one_suffices` continues unchanged, and does not use the number.
        """
        request, account = context.unsized, context.account
        assert request is not None, "the recipe adapts to the rows"
        with encoded(rows, self._all_rows(coarse(request.domain))) as coded:
            private = [table[0] for table in coded.count_classes(0, 1)]
        noise, k = context.randomness.noise, request.rows_per_unit
        wrong = misclassified(private, account.spend(STRONGEST), k, noise)
        recipe, classes = context.recipe, np.array(context.request.histogram)  # noisy
        if recipe.if_one_suffices is not None:
            if 2 * wrong >= classes.sum():
                return context
            recipe, request = recipe.alternative(request)
        request = replace(request, misclassified=wrong)
        return sized(replace(context, recipe=recipe), request, classes)

    def _with_drawn(self, rows: Snapshot, context: RunContext) -> RunContext:
        """The context with the attributes that are drawn, each in the bins that it is drawn in."""
        request = context.request
        assert context.unsized is not None, "the recipe adapts to the rows"
        candidates = in_windows(request.domain, context.unsized.domain)
        context.observe(Event(Phase.CHOOSE_BINS))
        coding = self._all_rows(candidates.counted)
        with encoded(rows, coding, likely_rows=request.rows) as coded:
            private = [table[0] for table in coded.count_classes(0, 1)]
            drawn = draw(coded, private, candidates, context)
        domain, numbers = candidates.in_bins(drawn), tuple(one.number for one in drawn)
        return replace(context, request=replace(request, domain=domain, drawn=numbers))

    def _grown(
        self, rows: Snapshot, context: RunContext, before: Sequence[Tree], *, last: bool
    ) -> Grown:
        """The trees that a phase releases, after the trees `before`.

        If attributes were drawn before, only these are encoded.
        """
        context.observe(Event(Phase.ENCODE))
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
        with encoded(rows, coding, likely_rows=request.rows, last=last) as coded:
            grown = recipe.learner.grow(coded, replace(context, request=request))
        if context.request.drawn:
            trees = [tree.renumbered(context.request.drawn) for tree in grown.trees]
            grown = replace(grown, trees=trees)
        return grown

    def _all_rows(self, domain: Domain) -> Coding:
        """The coding of all rows at one node."""
        return Coding(domain, self.unit, trees=1, sample="all", salt=self.randomness.salt)

    def _class_counts(self, rows: Snapshot, domain: Domain) -> Integers:
        """The private class counts of all rows; coding one attribute is enough for them."""
        narrow = replace(domain, attributes=domain.attributes[:1])
        with encoded(rows, self._all_rows(narrow)) as coded:
            counts: Integers = coded.count_leaves(0, 1)[0]
            return counts

    def _cell_counts(self, rows: Snapshot, domain: Domain) -> list[Integers]:
        """The private counts of each attribute's cells."""
        with encoded(rows, self._all_rows(domain)) as coded:
            return [table[0].sum(axis=1) for table in coded.count_classes(0, 1)]

    def guarantee(self, plan: Plan) -> Guarantee:
        """What the forest promises, according to the plan of the run."""
        return Guarantee(
            epsilon=show(self.request.epsilon),
            delta=show(self.delta, ATTO),
            private=not self.reasons,
            reasons=self.reasons,
            unit=self.unit.column,
            rows_per_unit=self.unit.rows,
            neighbours=self.unit.neighbours,
            noise=self.randomness.noise.name,
            plan=plan.lines(),
        )


@dataclass(frozen=True)
class RunContext(TrainingContext):
    """The training context with the whole recipe, which the run needs and a learner does not.

    `unsized` is the request before the recipe adapted it to the rows; None if it does not.
    """

    recipe: Recipe
    unsized: Request | None = None


@contextlib.contextmanager
def encoded(
    rows: Snapshot, coding: Coding, *, likely_rows: int = 0, last: bool = False
) -> Iterator[CodedRows]:
    """The coded rows; dropped at the end."""
    coded = rows.encode(coding, likely_rows=likely_rows, last=last)
    try:
        yield coded
    except BaseException:
        # an interrupt aborts the transaction, in which nothing can be dropped; what was coded
        # then goes with the connection
        with contextlib.suppress(DpforestError):
            coded.drop()
        raise
    coded.drop()


def adapted(classes: Integers, context: RunContext) -> RunContext:
    """The context after the noisy class counts of all rows are known.

    `classes` are the private counts. A published form that takes them as public uses the true
    counts; it is not private.
    """
    recipe, request, account = context.recipe, context.request, context.account
    if account.plan.query(ROWS):
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
    recipe, account, noise = context.recipe, context.account, context.randomness.noise
    k = context.request.rows_per_unit
    first = noise.laplace(private, account.spend(ROWS), k)
    request = recipe.counted(context.request, first)
    account.replan(recipe.plan(request))
    if account.plan.query(AGAIN) is None:
        return first, request
    second = noise.laplace(private, account.spend(AGAIN), k)
    mean = np.average([first, second], axis=0, weights=account.plan.row_exactness(k))
    return np.rint(mean).astype(np.int64), request


def sized(context: RunContext, request: Request, classes: Integers) -> RunContext:
    """The context with the plan that the recipe makes of a request and these class counts."""
    settled = context.recipe.sized(request, classes)
    context.account.replan(context.recipe.plan(settled))
    return replace(context, request=settled, unsized=request)
