"""Training: plan, debit, level loop, finished forest. The one place that orders the steps."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb import __version__, store
from dpforest_duckdb.declarations import declared_domain
from dpforest_duckdb.domain import Domain, load_domain
from dpforest_duckdb.engine.base import CodedRows, TableInfo
from dpforest_duckdb.engine.duckdb import DuckDBEngine, Trace
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.forest import LEAF, Forest, Guarantee, Tree
from dpforest_duckdb.growth import Growth
from dpforest_duckdb.privacy.accountant import Accountant, Plan
from dpforest_duckdb.privacy.bits import Bits, SecureBits, SeededBits
from dpforest_duckdb.privacy.guard import Guard
from dpforest_duckdb.privacy.ledger import Unit
from dpforest_duckdb.privacy.noise import CountNoise, ExactNoise, OpenDPNoise
from dpforest_duckdb.privacy.units import atto_delta, nano_epsilon, show
from dpforest_duckdb.recipe import Recipe, Request
from dpforest_duckdb.recipes import find
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import Choice

if TYPE_CHECKING:
    import duckdb

Array = NDArray[np.int64]
Progress = Callable[[str], None]

SEEDED = "The noise comes from a seed and can be repeated."


@dataclass(frozen=True)
class Randomness:
    """Where noise, selection and the salt come from; private only from the system's own source."""

    noise: CountNoise
    bits: Bits
    salt: int

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

    def execute(self, progress: Progress = lambda message: None) -> Forest:
        """Debit, count, draw, finish and store. Raises `DpforestError`; a debit stays spent."""
        progress("debit")
        run = self.guard.debit(
            max(self.plan.epsilon, self.request.epsilon),
            0,
            self.unit,
            recipe=self.recipe.name,
            model=self.name or "",
            private=not self.reasons,
            plan=[asdict(query) for query in self.plan.queries],
        )
        try:
            forest = self._train(progress)
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

    def _train(self, progress: Progress) -> Forest:
        progress("encode")
        rows = self.engine.encode(
            self.table,
            self.request.domain,
            self.unit,
            trees=self.request.trees,
            disjoint=self.recipe.rows == "disjoint",
            salt=self.randomness.salt,
        )
        account = Accountant(self.plan)
        try:
            trees = grow(rows, self.recipe, self.request, account, self.randomness, progress)
        finally:
            rows.drop()
        progress("finish")
        return Forest(
            name=self.name or self.table.name,
            recipe=self.recipe.name + (" as published" if self.recipe.flaws else ""),
            guarantee=self.guarantee(),
            domain=self.request.domain,
            trees=tuple(self.recipe.finish(tree, self.request, self.plan) for tree in trees),
            table=self.table.reference,
            version=__version__,
        )

    def guarantee(self) -> Guarantee:
        return Guarantee(
            epsilon=show(self.request.epsilon),
            private=not self.reasons,
            reasons=self.reasons,
            unit=self.unit.column,
            rows_per_unit=self.unit.rows,
            neighbours=self.unit.neighbours,
            noise=self.randomness.noise.name,
            plan=self.plan.lines(),
        )


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
    ledger: str | Path | None = None,
    trace: Trace | None = None,
) -> Run:
    """Plan a run and check all that is public, without reading a row and without a debit.

    `domain` is a `Domain`, a domain file, or None for DuckDB's own declarations. `privacy_unit` is
    a column or "row", by default the domain's; `rows_per_unit` bounds the rows that count of each.
    `delta` is accepted for recipes that can use it; today's are pure ε and spend none. `seed` makes
    the run repeatable and not private. Raises `DpforestError` or `UsageError`.
    """
    nano = nano_epsilon(epsilon)
    atto_delta(delta)
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
    request = chosen.request(public, nano, trees=trees, depth=depth, rows_per_unit=unit.rows)
    plan = chosen.plan(request)
    if any(query.epsilon < 1 for query in plan.queries):
        raise DpforestError(
            "--epsilon is too small to be shared by all the queries of this recipe: raise it, or "
            "ask for fewer trees or less depth."
        )
    if name is not None:
        store.check_name(engine, name, replace=replace)
    return Run(
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


def grow(
    rows: CodedRows,
    recipe: Recipe,
    request: Request,
    account: Accountant,
    randomness: Randomness,
    progress: Progress,
) -> list[Tree]:
    """The level loop: count, release what was planned, choose, route; until no node is open.

    Only noisy histograms and drawn splits enter the trees; true counts stay in this function.
    """
    domain, k, noise = request.domain, request.rows_per_unit, randomness.noise
    growth = Growth(domain.cells, request.trees, len(domain.classes))
    ways = candidates(domain, recipe.ways)
    reachable = np.ones((request.trees, sum(domain.cells)), dtype=np.bool_)
    plan, depth, limit = account.plan, 0, request.depth
    first, level = 0, request.trees
    level_epsilon: int | None = None  # as planned
    while True:
        trees = f"{request.trees} tree{'s' if request.trees > 1 else ''}, "
        progress(f"{trees}depth {depth} of {limit}")
        asked = plan.query("histogram")
        counts = rows.count_classes(first, level) if depth < limit else []
        if asked or depth == 0:
            classes = counts[0].sum(axis=1) if counts else rows.count_leaves(first, level)
        if depth == 0 and recipe.adapt and plan.query("rows"):
            noisy = noise.laplace(classes, account.spend("rows"), k)
            limit = recipe.adapt(noisy, request)
            # fewer depths share what was planned for all of them
            split = plan.query("split")
            level_epsilon = split.epsilon * split.levels // limit if split else None
        histogram = noise.laplace(classes, account.spend("histogram"), k) if asked else None
        if histogram is not None:
            growth.noisy[first : first + level] = histogram
        if depth >= limit:
            break
        allowed = ways.allowed(reachable)
        open_ = allowed.any(axis=1)
        if recipe.stop and histogram is not None:
            open_ &= ~recipe.stop(histogram)
        nodes = np.flatnonzero(open_)
        epsilon = account.spend("split", level_epsilon)
        if not len(nodes):
            break
        choice = Choice(ways, counts, allowed, histogram, epsilon, k, randomness.bits)
        if depth == 0 and recipe.distinct_roots:
            chosen = _distinct(choice, nodes, recipe)
        else:
            chosen = recipe.choose(choice.of(nodes))
        splits = growth.split(
            first + nodes, ways.attribute[chosen], ways.kind[chosen], ways.cell[chosen]
        )
        rows.route(splits, growth.nodes)
        reachable = np.concatenate(
            [ways.descend(reachable[n], c) for n, c in zip(nodes, chosen, strict=True)]
        )
        first, level, depth = first + level, len(reachable), depth + 1
    if plan.query("leaf"):
        leaves = np.flatnonzero(growth.kind == LEAF)
        counted = rows.count_leaves(0, growth.nodes)[leaves]
        growth.noisy[leaves] = noise.laplace(counted, account.spend("leaf"), k)
    return growth.finished()


def _distinct(choice: Choice, nodes: Array, recipe: Recipe) -> Array:
    """Roots one after the other, each without the attributes of those before it.

    What is left out was drawn before: released, so the candidates of a later root are public.
    """
    chosen: list[int] = []
    for node in nodes:
        own = choice.of(np.array([node]))
        taken = np.isin(choice.candidates.attribute, choice.candidates.attribute[chosen])
        own.allowed[:, taken] = False
        chosen.append(int(recipe.choose(own)[0]))
    return np.array(chosen, dtype=np.int64)
