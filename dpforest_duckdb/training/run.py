"""A run: debit, phases, finished forest. This file alone orders them.

`phases.py` has the steps that read rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import CodedTable, Engine, Snapshot, StoredRow
from dpforest_duckdb.errors import DpforestError, PublicFactWarning, one_line, warn
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.ledger.accounts import AnyAccount
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import Charge
from dpforest_duckdb.ledger.open_run import debited
from dpforest_duckdb.model import store
from dpforest_duckdb.model.doubts import doubts
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.model.json_format import fingerprint
from dpforest_duckdb.privacy.amounts import ATTO, show
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.progress import Event, Observer, Phase, observer, unobserved
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.training.coded_tables import coded_tables
from dpforest_duckdb.training.phases import Phases
from dpforest_duckdb.training.reading import Reader
from dpforest_duckdb.tree import Tree
from dpforest_duckdb.version import __version__

SEEDED = "The noise comes from a seed and can be repeated."


@dataclass(frozen=True)
class Run:
    """A training run that is planned and checked, and has not read any row.

    Everything in it is public; `notes` are sentences about it. `unused_columns` are not in the
    domain, nor the privacy unit; `left_out` are attributes of the domain that the request leaves
    out. `rows_at_most` is a public upper bound on the table's rows. The ledger records the model
    by the name that it is stored under, else by its `file`. `execute` debits the whole cost, then
    reads the rows.
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
    file: str = ""
    notes: tuple[str, ...] = ()
    unused_columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    rows_at_most: int | None = None

    def __repr__(self) -> str:
        delta = f", δ = {show(self.delta, ATTO)}" if self.delta else ""
        rows = f'{self.account.noun} "{self.account.display}"'
        return (
            f"<Run: {self.recipe.label} on {rows}, ε = {show(self.cost)}{delta}, for {self.unit}>"
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the forest is not private; none if it is. `leaks` are what the caller states."""
        return self.leaks + self.recipe.flaws + (() if self.randomness.private else (SEEDED,))

    @property
    def cost(self) -> int:
        """The debit in nano-ε."""
        return self.plan.debit(self.request.epsilon)

    @property
    def delta(self) -> int:
        """The debit in atto-δ: the requested δ if a plan of the recipe uses one, else 0."""
        return self.request.delta

    @property
    def charge(self) -> Charge:
        """What the ledger records of the run before it reads a row."""
        return Charge(
            self.cost,
            self.delta,
            self.unit,
            recipe=self.recipe.label,
            model=self.name or one_line(self.file)[: store.LONGEST_NAME],
            private=not self.reasons,
            plan=tuple(query.facts() for query in self.plan.queries),
        )

    @property
    def tables(self) -> list[CodedTable]:
        """The tables of coded rows that the run may need."""
        return coded_tables(self.recipe, self.request, self.unit)

    @property
    def bytes_of_a_row(self) -> int:
        """The most temporary space per row, in memory or on disk, from public facts."""
        return self.bytes_after((), shared=False)

    def bytes_after(self, before: Sequence[Run], *, shared: bool) -> int:
        """`bytes_of_a_row` after the runs `before`, on a snapshot `shared` with them and others."""
        learners = [recipe.learner for recipe in (self.recipe, *self.recipe.adaptation.successors)]
        trees = max(learner.trees_at_once(self.request) for learner in learners)
        scores = max(learner.score_columns(self.request) for learner in learners)
        # then every tree needs its own column of nodes
        several = self.recipe.rows == "all" or any(each.compares_trees for each in learners)
        stored = StoredRow(
            self.tables,
            unit=None if self.unit.is_row else self.table.columns[self.unit.column],
            node_columns=trees if several else 1,
            scores=scores,
            grouped=any(learner.rates_mixtures for learner in learners),
            shared=shared,
            before=[table for run in before for table in run.tables],
        )
        return self.engine.bytes_of_a_row(stored)

    def refuse_if_too_large(self, before: Sequence[Run] = (), *, shared: bool = False) -> None:
        """Raise `DpforestError` if `rows_at_most` rows may not fit into memory and temporary disk,
        after the runs `before`, on a snapshot `shared` with them and others.
        """
        if self.rows_at_most is None:
            return
        needed = self.rows_at_most * self.bytes_after(before, shared=shared)
        if needed > self.engine.room():
            size = f"{needed / 1e9:,.1f} GB" if needed >= 1e9 else f"{needed / 1e6:,.1f} MB"
            raise DpforestError(
                f"{self.rows_at_most:,} rows may need {size} of temporary space, "
                "more than is available: raise --memory-limit, free some disk, or "
                "choose a larger folder with --temp-dir."
            )

    def execute(self, progress: Observer | None = None) -> Forest:
        """Debit, count, draw, finish and store. Raises `DpforestError`; a debit stays spent.

        `progress` is called with an `Event` at the start of each step, which is text too.
        """
        observe = observer(progress)
        self.engine.refuse_unseen(self.table)
        with self.engine.snapshot(self.table) as rows:
            return self.execute_on(rows, observe)

    def execute_on(self, rows: Snapshot, observe: Observer) -> Forest:
        """`execute` on a snapshot of the table, which several runs may share."""
        observe(Event(Phase.DEBIT))
        with debited(self.account, self.charge, rows.table_seen) as run:
            forest = grown_forest(self, rows, observe)
            run.made = fingerprint(forest)
            if self.name is not None:
                observe(Event(Phase.STORE))
                forest = store.keep(self.engine.models, forest, replace=self.replace)
        with contextlib.suppress(UserWarning):  # where warnings are errors: the forest is paid for
            for doubt in doubts(forest):
                warn(doubt, PublicFactWarning)
        return forest

    def check(self, chain: Chain, seen: TableInfo | None) -> None:
        """Raise `BudgetError` if the budget would refuse `execute` after the entries of `chain`.

        `seen` is the table as it was before `chain` was read, if it is one. The run is added to
        `chain` in memory; the ledger's file does not change.
        """
        self.account.check(chain, self.charge, seen)

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


@np.errstate(all="ignore")  # no value of a row may make a run fail, whatever np.seterr says
def grown_forest(run: Run, rows: Snapshot, observe: Observer = unobserved) -> Forest:
    """The forest that a run grows from a snapshot. Nothing is debited, and no cap is looked at.

    `Run.execute` does both before; audits and tests grow forests from rows that they made up.
    """
    trees: list[Tree] = []
    queries: list[PlannedQuery] = []
    limited = 0
    phases = Phases(Reader(rows, run.unit, run.randomness), run.recipe, observe)
    requests = run.recipe.phases(run.request)
    for number, request in enumerate(requests, 1):
        context = phases.context(request)
        grown = phases.grown(context, trees, last=number == len(requests))
        trees += context.recipe.finish(grown, context.request, context.accountant.plan)
        limited += grown.limited
        queries += context.accountant.plan.queries
    observe(Event(Phase.FINISH))
    return Forest(
        name=run.name or run.table.name,
        recipe=run.recipe.label,
        guarantee=run.guarantee(Plan(tuple(queries))),
        domain=context.request.domain.published(),
        trees=tuple(trees),
        link=context.recipe.link,
        table=run.table.reference,
        version=__version__,
        voting=context.recipe.voting,
        limited=limited,
        picked="" if context.recipe.name == run.recipe.name else context.recipe.name,
    )
