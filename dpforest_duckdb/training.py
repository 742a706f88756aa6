"""Training: plan, debit, level loop, finished forest. The one place that orders the steps."""

from __future__ import annotations

import contextlib
import secrets
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb import __version__, store
from dpforest_duckdb.boosting import boost
from dpforest_duckdb.declarations import declared_domain
from dpforest_duckdb.domain import Domain, load_domain
from dpforest_duckdb.engine.base import CodedRows, Sample, TableInfo
from dpforest_duckdb.engine.duckdb import DuckDBEngine, Trace
from dpforest_duckdb.engine.space import bytes_of_a_row, refuse_if_too_large
from dpforest_duckdb.errors import BudgetError, DpforestError, PlainSpillWarning, UsageError
from dpforest_duckdb.forest import LEAF, Forest, Guarantee, Tree
from dpforest_duckdb.growth import Growth
from dpforest_duckdb.joint import release
from dpforest_duckdb.medians import median_epsilon, on_the_grid, recut_by_medians
from dpforest_duckdb.privacy.accountant import Accountant, Plan, PlanError, Query
from dpforest_duckdb.privacy.bits import Bits, SecureBits, SeededBits
from dpforest_duckdb.privacy.guard import Guard
from dpforest_duckdb.privacy.ledger import Unit
from dpforest_duckdb.privacy.noise import (
    CountNoise,
    ExactNoise,
    OpenDPNoise,
    laplace_deviation,
)
from dpforest_duckdb.privacy.units import ATTO, NANO, atto_delta, nano_epsilon, show
from dpforest_duckdb.recipe import Grown, Level, Progress, Recipe, Request
from dpforest_duckdb.recipes import find
from dpforest_duckdb.scoring import labels
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import LATER, Choice, distinct

if TYPE_CHECKING:
    import duckdb

Array = NDArray[np.int64]

PLAIN_SPILL = (
    "The database is encrypted, but what DuckDB spills of it when memory is short is not: "
    "SET temp_file_encryption = true on the connection first."
)
SEEDED = "The noise comes from a seed and can be repeated."


@dataclass(frozen=True)
class Randomness:
    """Where noise, selection and the salt come from; private only from the system's own source."""

    noise: CountNoise
    bits: Bits
    salt: int = field(repr=False)

    @property
    def private(self) -> bool:
        return self.noise.private and self.bits.private

    @staticmethod
    def secure() -> Randomness:
        return Randomness(OpenDPNoise(), SecureBits(), secrets.randbits(63))

    @staticmethod
    def seeded(seed: int) -> Randomness:
        """For experiments: repeatable, and therefore not private."""
        bits = SeededBits(seed)
        return Randomness(ExactNoise(bits), bits, int(bits.words(1)[0] >> np.uint64(1)))


@dataclass(frozen=True)
class Run:
    """A training run that is planned and checked, and has read nothing yet.

    Everything in it is public. `execute` debits the whole cost, then reads the rows.
    """

    engine: DuckDBEngine
    guard: Guard
    table: TableInfo
    recipe: Recipe
    request: Request
    plan: Plan
    unit: Unit
    randomness: Randomness
    name: str | None
    replace: bool

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the forest is not private; none if it is."""
        return self.recipe.flaws + (() if self.randomness.private else (SEEDED,))

    @property
    def cost(self) -> int:
        """What is debited, in nano-ε: what was asked for, or what a published form overspends."""
        return max(self.plan.epsilon, self.request.epsilon)

    @property
    def delta(self) -> int:
        """The δ that is debited, in atto-δ: what was asked for, where the recipe can use one."""
        return self.request.delta if self.uses_delta else 0

    @property
    def bytes_of_a_row(self) -> int:
        """The most temporary space that a row takes, in memory or on disk; by public facts."""
        boosts, classes = bool(self.plan.query("sweep")), len(self.request.domain.classes)
        copies = _copies(self.plan, self.request.trees) if self.recipe.rows == "all" else 1
        scored = boosts or self.recipe.heir is not None  # a column for each, but one of two
        scores = (classes if classes > 2 else 1) if scored else 0
        return bytes_of_a_row(self.request.domain, copies, scores)

    @property
    def uses_delta(self) -> bool:
        return self.recipe.heir is not None or self.plan.concentrated

    def execute(self, progress: Progress = lambda message: None) -> Forest:
        """Debit, count, draw, finish and store. Raises `DpforestError`; a debit stays spent."""
        progress("debit")
        run = self.guard.debit(
            self.cost,
            self.delta,
            self.unit,
            recipe=self.recipe.name,
            model=self.name or "",
            private=not self.reasons,
            plan=[asdict(query) for query in self.plan.queries],
        )
        try:
            forest = self.release(progress)
            if self.name is not None:
                progress("store")
                store.save(self.engine, forest, replace=self.replace)
        except BaseException:
            with contextlib.suppress(DpforestError):
                self.guard.ledger.close_run(run, "failed")
            raise
        with contextlib.suppress(DpforestError):  # the debit stands whatever becomes of this line
            self.guard.ledger.close_run(run, "done")
        return forest

    def release(self, progress: Progress = lambda message: None) -> Forest:
        """The forest alone, without a debit: for `execute`, and to audit made-up tables."""
        trees: list[Tree] = []
        asked: list[Query] = []
        for phase in self.recipe.phases(self.request):
            finished, recipe, request, plan = self._grow(phase, trees, progress)
            trees += finished
            asked += plan.queries
        progress("finish")
        return Forest(
            name=self.name or self.table.name,
            recipe=self.recipe.name + (" as published" if self.recipe.flaws else ""),
            guarantee=self.guarantee(Plan(tuple(asked))),
            domain=request.domain,
            trees=tuple(trees),
            link=recipe.link,
            table=self.table.reference,
            version=__version__,
            voting=recipe.voting,
        )

    def _grow(
        self, request: Request, before: Sequence[Tree], progress: Progress
    ) -> tuple[list[Tree], Recipe, Request, Plan]:
        """The finished trees of a phase, after those `before`; all as it ended."""
        plan = self.recipe.plan(request)
        account = Accountant(plan, max(plan.epsilon, request.epsilon), request.delta)
        if before and self.recipe.second is not None:
            weights = self.recipe.second.weigh(before, request.domain.cells)
            request = replace(request, weights=weights)
        recipe = self.recipe
        if recipe.adapt is not None:
            progress("look")
            recipe, request = self._adapted(request, account)
        if account.plan.query("bins"):
            progress("bins")
            request = self._cut(request, account)
        progress("encode")
        copies = _copies(account.plan, request.trees)
        rows = self._encode(request.domain, copies, recipe.rows, before)
        try:
            grown = learn(rows, recipe, request, account, self.randomness, progress)
        finally:
            rows.drop()
        return recipe.finish(grown, request, account.plan), recipe, request, account.plan

    def _encode(
        self, domain: Domain, trees: int, sample: Sample, before: Sequence[Tree] = ()
    ) -> CodedRows:
        second = self.recipe.second
        return self.engine.encode(
            self.table,
            domain,
            self.unit,
            trees=trees,
            sample=sample,
            salt=self.randomness.salt,
            judges=labels(before, domain),
            heavy=1 if second is None else second.heavy,
        )

    def _adapted(self, request: Request, account: Accountant) -> tuple[Recipe, Request]:
        domain = request.domain  # one attribute is enough to count classes
        rows = self._encode(replace(domain, attributes=domain.attributes[:1]), 1, "all")
        try:
            classes = rows.count_leaves(0, 1)[0]
        finally:
            rows.drop()
        return adapted(classes, self.recipe, request, account, self.randomness.noise)

    def _cut(self, request: Request, account: Accountant) -> Request:
        rows = self._encode(on_the_grid(request.domain), 1, "all")
        try:
            counts = [table[0].sum(axis=1) for table in rows.count_classes(0, 1)]
        finally:
            rows.drop()
        return recut(counts, request, account, self.randomness.bits)

    def guarantee(self, plan: Plan) -> Guarantee:
        """What the forest promises, by the plan that was followed."""
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


def _copies(plan: Plan, trees: int) -> int:
    """How many trees route the rows: none does in rounds of boosting or for tables together."""
    return 1 if plan.query("sweep") or plan.query("tables") else trees


def train(
    con: duckdb.DuckDBPyConnection,
    table: str,
    *,
    epsilon: float | str | Decimal,
    domain: Domain | str | Path | None = None,
    recipe: str = "auto",
    name: str | None = None,
    progress: Progress = lambda message: None,
    **options: object,
) -> Forest:
    """Train a forest on a table inside DuckDB; the options are those of `prepare`.

    With `name` the forest is also stored in the connection's database. The table's rows stay in the
    database; what comes back is released under the budget and free to publish if `forest.private`.
    Raises `DpforestError`, one sentence, before anything is read or debited wherever that can be
    known without reading.
    """
    run = prepare(
        con,
        table,
        epsilon=epsilon,
        domain=domain,
        recipe=recipe,
        name=name,
        **options,  # type: ignore[arg-type]
    )
    return run.execute(progress)


def train_many(runs: Sequence[Run], progress: Progress = lambda message: None) -> Iterator[Forest]:
    """Execute prepared runs on one table, one after the other; the rows are coded once for all.

    Each is debited by itself, but none if the cap does not allow them all. Raises as `train`.
    """
    first = runs[0]
    if {(run.table.reference, run.guard.ledger.path) for run in runs} != {
        (first.table.reference, first.guard.ledger.path)
    }:
        raise UsageError("Runs that go together need one table and one ledger.")
    budget = first.guard.budget()
    for symbol, scale, wanted, left in (
        ("ε", NANO, sum(run.cost for run in runs), budget.left_epsilon),
        ("δ", ATTO, sum(run.delta for run in runs), budget.left_delta),
    ):
        if len(runs) > 1 and left is not None and wanted > left:
            raise BudgetError(
                f"Refused: these runs need {symbol} = {show(wanted, scale)} together but only "
                f'{show(left, scale)} of the cap is left for table "{first.table.display}": ask '
                "for fewer or raise the cap."
            )
    with first.engine.sharing():
        for run in runs:
            yield replace(run, engine=first.engine, guard=first.guard).execute(progress)


def prepare(
    con: duckdb.DuckDBPyConnection,
    table: str,
    *,
    epsilon: float | str | Decimal,
    delta: float | str | Decimal = 0,
    domain: Domain | str | Path | None = None,
    target: str | None = None,
    privacy_unit: str | None = None,
    rows_per_unit: int = 1,
    recipe: str = "auto",
    trees: int | None = None,
    depth: int | None = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    name: str | None = None,
    replace: bool = False,
    as_published: bool = False,
    seed: int | None = None,
    rows_at_most: int | None = None,
    ledger: str | Path | None = None,
    trace: Trace | None = None,
) -> Run:
    """Plan a run and check all that is public, without reading a row and without a debit.

    `domain` is a `Domain`, a domain file, or None for DuckDB's own declarations. `privacy_unit` is
    a column or "row", by default the domain's; `rows_per_unit` bounds the rows that count of each.
    `delta` is for recipes that can use it (`auto`, `boosted`); others are pure ε and spend none.
    `seed` makes the run repeatable and not private. `rows_at_most` is a public bound of the table's
    rows: a run for which temporary space may not do is then refused. Warns with `PlainSpillWarning`
    where the table's database is encrypted and DuckDB's temporary files are not. Raises
    `DpforestError` or `UsageError`.
    """
    nano, atto = nano_epsilon(epsilon), atto_delta(delta)
    for option, value, most in (("--trees", trees, 1000), ("--depth", depth, 20)):
        if value is not None and not 1 <= value <= most:
            raise UsageError(f"{option} must be a whole number from 1 to {most}.")
    chosen = find(recipe, as_published=as_published)
    engine = DuckDBEngine(con, trace)
    info = engine.table(table)
    if isinstance(domain, Domain):
        public = domain
    elif domain is not None:
        public = load_domain(domain, target)
    else:
        public = declared_domain(engine, info, target)
    public = public.keep(columns, exclude)
    unit = _unit(public, info, privacy_unit, rows_per_unit)
    public = public.without(unit.column).bind(info.columns)
    request = chosen.request(
        public, nano, trees=trees, depth=depth, rows_per_unit=unit.rows, delta=atto
    )
    plan = chosen.whole_plan(request)
    # a chooser divides a query into no more than two shares for each attribute and two more
    least = 2 * (len(public.attributes) + 1)
    if any(cost < least for query in plan.queries for cost in query.by_depth):
        raise DpforestError(
            "--epsilon is too small to be shared by all the queries of this recipe: raise it, or "
            "ask for fewer trees or less depth."
        )
    if name is not None:
        store.check_name(engine, name, replace=replace)
    if engine.spills_plain(info.catalog):
        warnings.warn(PLAIN_SPILL, PlainSpillWarning, stacklevel=2)
    run = Run(
        engine=engine,
        guard=Guard.of(engine, info, ledger),
        table=info,
        recipe=chosen,
        request=request,
        plan=plan,
        unit=unit,
        randomness=Randomness.secure() if seed is None else Randomness.seeded(seed),
        name=name,
        replace=replace,
    )
    if rows_at_most is not None:
        if rows_at_most < 1:
            raise UsageError("--rows-at-most must be a whole number from 1.")
        refuse_if_too_large(con, rows_at_most, run.bytes_of_a_row)
    return run


def _unit(domain: Domain, info: TableInfo, asked: str | None, rows: int) -> Unit:
    """The privacy unit: as asked, else the domain's, else the row, if nothing speaks against it."""
    column = asked or domain.privacy_unit
    if column is None and domain.identifiers:
        raise DpforestError(
            f'The domain names an identifier, "{domain.identifiers[0]}": say whom to protect with '
            "--privacy-unit COLUMN or --privacy-unit row."
        )
    if not 1 <= rows <= 1_000_000:
        raise UsageError("--rows-per-unit must be a whole number from 1 to 1000000.")
    if column is None or column == "row":
        if rows > 1:
            raise UsageError("--rows-per-unit goes with a --privacy-unit column, not with rows.")
        return Unit("row")
    found = {name.casefold(): name for name in info.columns}
    if column.casefold() not in found:
        raise DpforestError(f'The table has no column "{column}": correct --privacy-unit.')
    if column.casefold() == domain.target.casefold():
        raise DpforestError("The target cannot be the privacy unit: correct --privacy-unit.")
    return Unit(found[column.casefold()], rows)


def adapted(
    classes: Array, recipe: Recipe, request: Request, account: Accountant, noise: CountNoise
) -> tuple[Recipe, Request]:
    """Recipe and request after a look at the private class counts of all rows, noisy and paid for.

    A published form that takes them as public takes the true ones; it is not private.
    """
    assert recipe.adapt is not None
    if account.plan.query("rows"):
        classes = noise.laplace(classes, account.spend("rows"), request.rows_per_unit)
    elif not recipe.flaws:
        raise PlanError("only a form that is not private may look at true counts")
    seen = replace(request, rows=max(int(classes.sum()), 1))
    heir = recipe.heir(seen) if recipe.heir else None
    if heir is not None:
        recipe, k = heir, request.rows_per_unit
        request = heir.request(
            request.domain, request.epsilon, rows_per_unit=k, delta=request.delta
        )
    assert recipe.adapt is not None, "an heir goes on from noisy rows"
    settled = recipe.adapt(classes, request)
    account.replan(recipe.plan(settled))
    return recipe, settled


def recut(counts: Sequence[Array], request: Request, account: Accountant, bits: Bits) -> Request:
    """The request with numeric attributes cut at private medians, by private counts on the grid."""
    query = account.plan.query("bins")
    assert query is not None, "only a plan that asks for bins gets them"
    turns = [account.spend("bins", turn) for turn in range(len(query.by_depth))]
    epsilons = [median_epsilon(cost, query.measure) for cost in turns]
    cut = recut_by_medians(request.domain, counts, epsilons, request.rows_per_unit, bits)
    return replace(request, domain=cut)


def learn(
    rows: CodedRows,
    recipe: Recipe,
    request: Request,
    account: Accountant,
    randomness: Randomness,
    progress: Progress,
) -> Grown:
    """What the plan is made for: levels of splits, rounds of boosting, or tables together."""
    if account.plan.query("sweep"):
        return boost(rows, request, account, randomness.noise, randomness.bits, progress)
    if account.plan.query("tables"):
        return release(rows, request, account, randomness.noise, progress)
    return grow(rows, recipe, request, account, randomness, progress)


def grow(
    rows: CodedRows,
    recipe: Recipe,
    request: Request,
    account: Accountant,
    randomness: Randomness,
    progress: Progress,
) -> Grown:
    """The level loop: count, release what was planned, choose, route; until no node is open.

    Only noisy counts and drawn splits enter the trees; true counts stay in this function.
    """
    domain, k, noise = request.domain, request.rows_per_unit, randomness.noise
    growth = Growth(domain.cells, request.trees, len(domain.classes))
    ways = candidates(domain, recipe.ways)
    plan, released = account.plan, dict[tuple[int, ...], int]()
    frontier = np.arange(request.trees)
    reachable = np.ones((len(frontier), sum(domain.cells)), dtype=np.bool_)
    expected = np.full(len(frontier), float(request.rows))
    words = f"{request.trees} tree{'s' if request.trees > 1 else ''}, "
    for depth in range(request.depth + 1):
        progress(f"{words}depth {depth} of {request.depth}")
        first = int(frontier.min())
        here, span = frontier - first, growth.nodes - first
        counts: list[Array] = []
        if plan.query("split") and depth < request.depth:
            counts = [table[here] for table in rows.count_classes(first, span)]
        noisy = None
        for purpose in ("histogram", "size"):
            if plan.query(purpose):
                told = counts[0].sum(axis=1) if counts else rows.count_leaves(first, span)[here]
                if purpose == "size":
                    told = told.sum(axis=1, keepdims=True)
                cost = account.spend(purpose, depth)
                noisy = noise.laplace(told, cost, k)
                if purpose == "histogram":
                    growth.release(frontier, noisy, laplace_deviation(cost, k))
        if depth == request.depth:
            break
        allowed = ways.allowed(reachable)
        open_ = allowed.any(axis=1)
        if recipe.stop is not None:
            open_ &= ~recipe.stop(Level(noisy, expected, request, plan))
        nodes = np.flatnonzero(open_)
        if not len(nodes):
            break
        epsilon = account.spend("split", depth) if counts else 0
        choice = Choice(
            candidates=ways,
            counts=counts,
            allowed=allowed,
            reachable=reachable,
            noisy=noisy,
            epsilon=epsilon,
            rows_per_unit=k,
            noise=noise,
            bits=randomness.bits,
            depth=depth,
            released=released,
            weights=request.weights,
        ).of(nodes)
        roots = depth == 0 and recipe.distinct_roots
        drawn = distinct(choice, recipe.choose) if roots else recipe.choose(choice)
        now = drawn.candidate != LATER
        later, split, chosen = nodes[~now], nodes[now], drawn.candidate[now]
        born = growth.nodes
        splits = growth.split(
            frontier[split], ways.attribute[chosen], ways.kind[chosen], ways.cell[chosen]
        )
        children = np.arange(born, growth.nodes)
        rows.route(splits, growth.nodes)
        if drawn.children is not None:
            growth.release(children, np.concatenate(drawn.children), drawn.noise)
        below, arity = ways.descend(reachable[split], chosen)
        reachable = np.concatenate([reachable[later], below])
        expected = np.concatenate([expected[later], np.repeat(expected[split] / arity, arity)])
        frontier = np.concatenate([frontier[later], children])
    if plan.query("leaf"):
        told = rows.count_leaves(0, growth.nodes)
        for number, leaves in enumerate(_leaves_asked(growth, plan)):
            cost = account.spend("leaf", number)
            noisy = recipe.leaf.ask(told[leaves], cost, k, noise, randomness.bits)
            growth.release(leaves, noisy, laplace_deviation(cost, k))
    trees = growth.finished()
    if not plan.query("scores") or recipe.scores is None:
        return Grown(trees)
    progress("scores")
    scores = recipe.scores(trees, request, plan)
    votes = [growth.spread(score) for score in scores.votes]
    told = scores.asked(rows.count_scores(votes, scores.cuts))
    return Grown(trees, noise.laplace(told, account.spend("scores"), k))


def _leaves_asked(growth: Growth, plan: Plan) -> list[NDArray[np.intp]]:
    """The leaves of each asking: all at once, or tree by tree where trees have shares of theirs."""
    leaf, query = growth.kind == LEAF, plan.query("leaf")
    if query is None or len(query.by_depth) == 1:
        return [np.flatnonzero(leaf)]
    return [np.flatnonzero(leaf & (growth.tree == tree)) for tree in range(growth.trees)]
