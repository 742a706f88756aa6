"""The contents of a ledger: caps, runs and how they ended, chained by hashes.

All of it is computed on entries in memory; `dpforest_duckdb.ledger.book` stores them in a file.

Amounts are integers: ε in nano-ε, δ in atto-δ (see `dpforest_duckdb.privacy.amounts`). Every cap
and every run has one unit and one neighbour relation. A run's entry has its plan. How it ended is
recorded with the hash of a private forest, but without the time: the duration depends on private
rows.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any, ClassVar, Literal

from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.privacy.amounts import ATTO, NANO, show
from dpforest_duckdb.privacy.unit import PrivacyUnit, same_unit

Outcome = Literal["done", "failed", "interrupted"]
State = Literal["open", "done", "failed", "interrupted"]
# prefixes of the places of budgets that belong to no table
FILE, DATASET = "file::", "dataset::"


@dataclass(frozen=True)
class Table:
    """A table, a file or a dataset as the ledger knows it.

    `dataset` is the opaque id of its budget. `name` is for people only, and `place`
    ("path::schema.table") is what `Chain.find` looks up.
    """

    dataset: str
    name: str
    place: str

    def __str__(self) -> str:
        """How messages name it."""
        return f'{self.noun} "{self.name}"'

    @property
    def noun(self) -> str:
        """What has the budget, for people."""
        if self.place.startswith(FILE):
            return "file"
        return "dataset" if self.place.startswith(DATASET) else "table"

    @property
    def option(self) -> str:
        """The option of the command line that names it."""
        if self.place.startswith(FILE):
            return f"--db {shlex.quote(self.place.removeprefix(FILE))}"
        return f"--{self.noun} {shlex.quote(self.name)}"


@dataclass(frozen=True)
class Cap:
    """The most that may be spent on a table: nano-ε and atto-δ, for one unit."""

    kind: ClassVar[str] = "cap"
    seq: int
    time: str
    table: Table
    epsilon: int
    delta: int
    unit: PrivacyUnit


@dataclass(frozen=True)
class Run:
    """A debit in nano-ε and atto-δ; it counts however the run ended (`state`)."""

    kind: ClassVar[str] = "open"
    seq: int
    time: str
    table: Table
    epsilon: int
    delta: int
    unit: PrivacyUnit
    recipe: str
    model: str
    private: bool
    plan: tuple[Mapping[str, Any], ...]
    versions: Mapping[str, str]
    state: State = "open"

    def facts(self) -> dict[str, Any]:
        """The run as a JSON object, in ε and δ."""
        names = ("time", "recipe", "model")
        return {
            **{name: getattr(self, name) for name in names},
            "epsilon": self.epsilon / NANO,
            "delta": self.delta / ATTO,
            "private": self.private,
            "state": self.state,
            "privacy_unit": self.unit.column,
            "rows_per_unit": self.unit.rows,
        }


@dataclass(frozen=True)
class Closing:
    """How the run with sequence number `run` ended; `forest` is the hash of a private forest."""

    kind: ClassVar[str] = "close"
    seq: int
    run: int
    state: Outcome
    forest: str = ""


@dataclass(frozen=True)
class Moved:
    """The budget of a table that vanished from its place continues at another, `table.place`."""

    kind: ClassVar[str] = "move"
    seq: int
    time: str
    table: Table


@dataclass(frozen=True)
class Retired:
    """The table no longer exists: other tables need not wait for it. Its spending stays."""

    kind: ClassVar[str] = "retire"
    seq: int
    time: str
    table: Table


Entry = Cap | Run | Closing | Moved | Retired


@dataclass(frozen=True)
class Budget:
    """What one table may spend and has spent, in nano-ε and atto-δ; oldest entry first."""

    caps: tuple[Cap, ...]
    entries: tuple[Run, ...]

    @property
    def cap(self) -> Cap | None:
        """The present cap, or None."""
        return self.caps[-1] if self.caps else None

    @property
    def spent_epsilon(self) -> int:
        return sum(run.epsilon for run in self.entries)

    @property
    def spent_delta(self) -> int:
        return sum(run.delta for run in self.entries)

    @property
    def left_epsilon(self) -> int | None:
        """Never negative; None without a cap."""
        return max(0, self.cap.epsilon - self.spent_epsilon) if self.cap else None

    @property
    def left_delta(self) -> int | None:
        """Never negative; None without a cap."""
        return max(0, self.cap.delta - self.spent_delta) if self.cap else None

    def facts(self) -> dict[str, Any]:
        """Cap, spending and runs as a JSON object, in ε and δ."""
        cap, left = self.cap, self.left_epsilon
        return {
            "cap": cap.epsilon / NANO if cap else None,
            "spent": self.spent_epsilon / NANO,
            "left": None if left is None else left / NANO,
            "delta_cap": cap.delta / ATTO if cap else None,
            "delta_spent": self.spent_delta / ATTO,
            "privacy_unit": cap.unit.column if cap else None,
            "rows_per_unit": cap.unit.rows if cap else None,
            "entries": [run.facts() for run in self.entries],
        }

    @property
    def overspent(self) -> bool:
        """More was spent before the cap than it allows: every run is refused until it is raised."""
        return self.cap is not None and (
            self.spent_epsilon > self.cap.epsilon or self.spent_delta > self.cap.delta
        )


@dataclass
class Chain:
    """The entries of a ledger with the rows that hold them: (seq, content, previous, hash)."""

    entries: list[Entry] = field(default_factory=list)
    rows: list[tuple[int, str, str, str]] = field(default_factory=list)

    @property
    def head(self) -> str:
        """The hash of the last entry, to be stored with the table; "" for an empty ledger."""
        return self.rows[-1][3] if self.rows else ""

    @property
    def next(self) -> int:
        return len(self.rows) + 1

    def row(self, content: str) -> tuple[int, str, str, str]:
        """The only row that may come next with this content."""
        digest = hashlib.sha256(f"{self.head}\n{content}".encode()).hexdigest()
        return self.next, content, self.head, digest

    def add(self, entry: Entry) -> None:
        self.rows.append(self.row(canonical(entry)))
        self.entries.append(entry)

    def budget(self, dataset: str) -> Budget:
        caps: list[Cap] = []
        runs: dict[int, Run] = {}
        for entry in self.entries:
            if isinstance(entry, Closing):
                if entry.run in runs:
                    runs[entry.run] = replace(runs[entry.run], state=entry.state)
            elif entry.table.dataset == dataset:
                if isinstance(entry, Cap):
                    caps.append(entry)
                elif isinstance(entry, Run):
                    runs[entry.seq] = entry
        return Budget(tuple(caps), tuple(runs.values()))

    def released(self, forest: str, runs: Collection[int] | None = None) -> bool:
        """Whether a private run, one of `runs` if they are given, released the forest with this
        hash.
        """
        private = {run.seq for run in self.entries if isinstance(run, Run) and run.private}
        if runs is not None:
            private &= set(runs)
        return bool(forest) and any(
            entry.forest == forest and entry.run in private
            for entry in self.entries
            if isinstance(entry, Closing)
        )

    def dataset_at(self, head: str) -> str | None:
        """The dataset of the entry whose hash is `head`; None if this ledger does not have it.

        Then the ledger was cut off, restored or replaced after `head` was stored with the table.
        """
        for row, entry in zip(self.rows, self.entries, strict=True):
            if row[3] == head and not isinstance(entry, Closing):
                return entry.table.dataset
        return None

    def debited(self, run: int) -> str | None:
        """The dataset that a run was debited from."""
        for entry in self.entries:
            if isinstance(entry, Run) and entry.seq == run:
                return entry.table.dataset
        return None

    def place_of(self, dataset: str) -> str | None:
        """Where a dataset was last seen."""
        for entry in reversed(self.entries):
            if not isinstance(entry, Closing) and entry.table.dataset == dataset:
                return entry.table.place
        return None

    def find(self, place: str) -> str | None:
        """The dataset id last seen at a place, for what cannot store its id; None for a new one."""
        for entry in reversed(self.entries):
            if not isinstance(entry, Closing) and entry.table.place == place:
                return entry.table.dataset
        return None

    def capped(self) -> list[Table]:
        """Where each table with a cap was last seen; those that are retired are left out."""
        last: dict[str, Table] = {}
        caps: set[str] = set()
        retired: set[str] = set()
        for entry in self.entries:
            if isinstance(entry, Closing):
                continue
            dataset = entry.table.dataset
            last[dataset] = entry.table
            retired.discard(dataset)  # a later entry brings a retired table back
            if isinstance(entry, Retired):
                retired.add(dataset)
            elif isinstance(entry, Cap):
                caps.add(dataset)
        return [table for dataset, table in last.items() if dataset in caps - retired]

    def set_cap(
        self, table: Table, epsilon: int, delta: int, unit: PrivacyUnit, *, raise_cap: bool
    ) -> None:
        """Cap a table at nano-ε and atto-δ; earlier spending counts.

        A cap below what is spent is accepted, leaves nothing, and shows as `Budget.overspent`.
        Raises `BudgetError` for a higher cap without `raise_cap`, for another unit than the old
        cap's once something is spent, and if earlier runs had another unit or were not private.
        """
        _check_amounts(epsilon, delta)
        cap = Cap(self.next, _now(), table, epsilon, delta, unit)
        _check_cap(cap, self.budget(table.dataset), raise_cap)
        self.add(cap)

    def debit(
        self,
        table: Table,
        epsilon: int,
        delta: int,
        unit: PrivacyUnit,
        *,
        recipe: str,
        model: str,
        private: bool,
        plan: Sequence[Mapping[str, Any]],
    ) -> int:
        """Spend nano-ε and atto-δ on a run; the run's number.

        `plan` is JSON: the planned queries. Raises `BudgetError`, and spends nothing, if the cap
        does not allow the run, is for another unit, or the run is not private. Without a cap the
        spending is recorded.
        """
        _check_amounts(epsilon, delta)
        run = Run(
            seq=self.next,
            time=_now(),
            table=table,
            epsilon=epsilon,
            delta=delta,
            unit=unit,
            recipe=recipe,
            model=model,
            private=private,
            plan=tuple(plan),
            versions=_versions(),
        )
        _check_run(run, self.budget(table.dataset))
        self.add(run)
        return run.seq

    def close_run(self, run: int, state: Outcome, forest: str = "") -> None:
        """Record how an open run ended, and the hash of its forest.

        Raises `DpforestError` for any other number.
        """
        opened = {entry.seq for entry in self.entries if isinstance(entry, Run)}
        closed = {entry.run for entry in self.entries if isinstance(entry, Closing)}
        if run not in opened - closed:
            raise DpforestError(
                f"The ledger has no open run {run}; it was closed before, or debited elsewhere."
            )
        self.add(Closing(self.next, run, state, forest))

    def move(self, table: Table) -> None:
        """Record that a budget continues at another place."""
        self.add(Moved(self.next, _now(), table))

    def retire(self, table: Table) -> None:
        """Record that a table no longer exists."""
        self.add(Retired(self.next, _now(), table))


def outcome(error: BaseException) -> Outcome:
    """How a run ended, by the error that ended it."""
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"


def _check_amounts(epsilon: int, delta: int) -> None:
    """Raise `UsageError` for anything but integers that can be a budget."""
    # A float, NaN or negative amount would get past every comparison with a cap.
    if type(epsilon) is not int or type(delta) is not int or epsilon < 1 or not 0 <= delta < ATTO:
        raise UsageError(
            "A budget must be a whole number of nano-ε above zero and of atto-δ from 0 to below 1."
        )


def _check_cap(new: Cap, budget: Budget, raise_cap: bool) -> None:
    old, table = budget.cap, new.table
    if old and not same_unit(old.unit, new.unit) and budget.entries:
        raise BudgetError(
            f"Refused: the cap of {table} protects {old.unit}, and something was spent "
            f"under it already, so that cannot be changed to {new.unit}."
        )
    for run in budget.entries:
        if not run.private:
            raise BudgetError(
                f"Refused: run {run.seq} on {table} was not private, so no cap can count it."
            )
        # whatever rows of a person a run used, it protected the person
        if not same_unit(replace(run.unit, rows=new.unit.rows), new.unit):
            raise BudgetError(
                f"Refused: run {run.seq} on {table} protected {run.unit}, "
                f"so a cap that protects {new.unit} cannot count it."
            )
    if old and not raise_cap:
        _check_not_raised("ε", NANO, old.epsilon, new.epsilon, table)
        _check_not_raised("δ", ATTO, old.delta, new.delta, table)


def _check_not_raised(symbol: str, scale: int, old: int, new: int, table: Table) -> None:
    if new > old:
        raise BudgetError(
            f"Refused: {table} has a cap of {symbol} = {show(old, scale)}; "
            f"add --raise if it is to become {show(new, scale)}."
        )


def _options(unit: PrivacyUnit) -> str:
    """The options of the command line for a privacy unit."""
    return f"--privacy-unit {shlex.quote(unit.column)} --rows-per-unit {unit.rows}"


def _check_run(run: Run, budget: Budget) -> None:
    cap, table = budget.cap, run.table
    if cap is None:
        return
    if not run.private:
        raise BudgetError(
            f"Refused: {table} has a cap, and a run that is not private cannot be counted "
            "against it: leave out --seed and --as-published."
        )
    if not same_unit(run.unit, cap.unit):
        hint = (
            f"train with {_options(cap.unit)}"
            if budget.entries or cap.unit.column != "row"
            else "nothing is spent yet, so run dpforest budget set "
            f"{table.option} {_options(run.unit)}"
        )
        raise BudgetError(
            f"Refused: the cap of {table} protects {cap.unit}, but this run would protect "
            f"{run.unit}: {hint}."
        )
    _check_left("ε", NANO, run.epsilon, budget.spent_epsilon, cap.epsilon, table)
    _check_left("δ", ATTO, run.delta, budget.spent_delta, cap.delta, table)


def _check_left(symbol: str, scale: int, needed: int, spent: int, cap: int, table: Table) -> None:
    if needed and not cap:
        raise BudgetError(
            f"Refused: the cap of {table} allows no {symbol}: leave --delta out, or raise the cap."
        )
    if spent + needed > cap:
        raise BudgetError(
            f"Refused: this run needs {symbol} = {show(needed, scale)} but only "
            f"{show(max(0, cap - spent), scale)} of the cap of {show(cap, scale)} is left "
            f"for {table}."
        )


def canonical(entry: Entry) -> str:
    return json.dumps(
        {"kind": entry.kind, **asdict(entry)},
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )


def parse(content: str) -> Entry:
    fields = json.loads(content)
    kind = fields.pop("kind")
    if kind == Closing.kind:
        return Closing(**fields)
    fields["table"] = Table(**fields["table"])
    if kind == Moved.kind:
        return Moved(**fields)
    if kind == Retired.kind:
        return Retired(**fields)
    fields["unit"] = PrivacyUnit(**fields["unit"])
    if kind == Cap.kind:
        return Cap(**fields)
    return Run(**fields | {"plan": tuple(fields["plan"])})


def _now() -> str:
    """UTC, for people to read: the order of entries is their sequence, not their time."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _versions() -> dict[str, str]:
    found = {}
    for package in ("dpforest-duckdb", "duckdb", "numpy", "opendp"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # run from a checkout, or opendp not installed
            continue
    return found
