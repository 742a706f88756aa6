"""The entries of a ledger: caps, debits and how their runs ended; and the budget that they leave.

Amounts are integers: ε in nano-ε, δ in atto-δ (see `dpforest_duckdb.privacy.amounts`). Every cap
and every run has one unit and one neighbour relation. A run's entry has its plan. How it ended is
recorded with the hash of a private forest, but without the time: the duration depends on private
rows.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo, quoted_name
from dpforest_duckdb.errors import number_of
from dpforest_duckdb.privacy.amounts import ATTO, NANO, show
from dpforest_duckdb.privacy.unit import PrivacyUnit, protects

# what a ledger's file calls the holder of a budget, and the budget's id
_HOLDER, _BUDGET_ID = "table", "dataset"
Ending = Literal["done", "failed", "interrupted"]
State = Literal["open", "done", "failed", "interrupted"]
# prefixes of the places of budgets that belong to no table
FILE, DATASET = "file::", "dataset::"
NO_FILE = ":memory:"  # begins the place of a database that has no file


def table_place(table: TableInfo, home: str) -> str:
    """The place of a table of the database at `home`, as `folded` gives it."""
    return f"{home}::{fold(quoted_name(table.schema, table.name))}"


def folded(place: str, home: str) -> str:
    """A place of the database at `home` with a folded name, so that equal tables have equal places.

    Names of tables, and of databases in memory, ignore case; paths do not. Other places stay.
    """
    head = f"{home}::"
    start = place[: len(head)]
    if (fold(start) if home.startswith(NO_FILE) else start) != head:
        return place
    return head + fold(place[len(head) :])


@dataclass(frozen=True)
class Holder:
    """What has a budget: a table, a file or a dataset, as the ledger knows it.

    `budget_id` is opaque. `name` is for people only, and `place`
    ("path::schema.table") is what `Chain.find` looks up.
    """

    budget_id: str
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
        return "table" if self.is_table else "dataset"

    @property
    def is_table(self) -> bool:
        """Whether it is a table of a database or of Spark."""
        return not self.place.startswith((FILE, DATASET))

    @property
    def where(self) -> str:
        """The file that it is, or is in, or the catalogue of Spark; "" for a dataset."""
        if self.place.startswith(DATASET):
            return ""
        if self.place.startswith(FILE):
            return self.place.removeprefix(FILE)
        return self.place.rsplit("::", self.name.count("::") + 1)[0]  # folders' names may have any

    @property
    def option(self) -> str:
        """The option of the command line that names it."""
        if self.place.startswith(FILE):
            return f"--db {shlex.quote(self.place.removeprefix(FILE))}"
        return f"--{self.noun} {shlex.quote(self.name)}"


@dataclass(frozen=True)
class Cap:
    """The most that may be spent on a holder's rows: nano-ε and atto-δ, for one unit."""

    kind: ClassVar[str] = "cap"
    seq: int
    time: str
    holder: Holder
    epsilon: int
    delta: int
    unit: PrivacyUnit


@dataclass(frozen=True)
class Charge:
    """What a run costs, in nano-ε and atto-δ, and what the ledger says of it.

    `plan` is JSON: the planned queries.
    """

    epsilon: int
    delta: int
    unit: PrivacyUnit
    recipe: str
    model: str
    private: bool
    plan: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Debit(Charge):
    """A charge that is debited; it counts however the run ended (`state`)."""

    kind: ClassVar[str] = "open"
    seq: int
    time: str
    holder: Holder
    versions: Mapping[str, str]
    state: State = "open"

    def facts(self) -> dict[str, Any]:
        """The run as a JSON object, in ε and δ; the time is cut to the hour."""
        return {
            "time": f"{self.time[:13]}:00:00+00:00",
            "recipe": self.recipe,
            "model": self.model,
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
    state: Ending
    forest: str = ""


@dataclass(frozen=True)
class Moved:
    """The budget of a table that vanished from its place continues at another, `holder.place`."""

    kind: ClassVar[str] = "move"
    seq: int
    time: str
    holder: Holder


@dataclass(frozen=True)
class Retired:
    """The table no longer exists: other tables need not wait for it. Its spending stays."""

    kind: ClassVar[str] = "retire"
    seq: int
    time: str
    holder: Holder


Entry = Cap | Debit | Closing | Moved | Retired


@dataclass(frozen=True)
class Budget:
    """What one holder may spend and has spent, in nano-ε and atto-δ; oldest entry first."""

    caps: tuple[Cap, ...]
    entries: tuple[Debit, ...]

    def __repr__(self) -> str:
        runs = number_of(len(self.entries), "run")
        cap, left = "no cap", self.left_epsilon
        if self.cap and left is not None:
            cap = f"{show(left)} left of a cap of {show(self.cap.epsilon)} for {self.cap.unit}"
        return f"<Budget: spent ε = {show(self.spent_epsilon)} by {runs}, {cap}>"

    @property
    def cap(self) -> Cap | None:
        """The present cap, or None."""
        return self.caps[-1] if self.caps else None

    @property
    def usual_unit(self) -> PrivacyUnit | None:
        """The unit of the present cap, or else of all runs; None if these differ, or if there is
        none.
        """
        units = {self.cap.unit} if self.cap else {run.unit for run in self.entries}
        return units.pop() if len(units) == 1 else None

    @property
    def spent_under_caps(self) -> bool:
        """Whether there was a run since the first cap."""
        return any(run.seq > cap.seq for run in self.entries for cap in self.caps[:1])

    @property
    def spent_epsilon(self) -> int:
        """The nano-ε of all runs."""
        return sum(run.epsilon for run in self.entries)

    @property
    def spent_delta(self) -> int:
        """The atto-δ of all runs."""
        return sum(run.delta for run in self.entries)

    @property
    def left_epsilon(self) -> int | None:
        """None without a cap; 0 if ε or δ is overspent, because every run is refused then."""
        if self.cap is None:
            return None
        return 0 if self.overspent else self.cap.epsilon - self.spent_epsilon

    @property
    def left_delta(self) -> int | None:
        """As `left_epsilon`, of δ."""
        if self.cap is None:
            return None
        return 0 if self.overspent else self.cap.delta - self.spent_delta

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
            "cap_limit": self.cap_limit or None,
            "entries": [run.facts() for run in self.entries],
        }

    @property
    def cap_limit(self) -> str:
        """Which caps are still possible after the earlier runs, in words.

        "" if all are, or if there is a cap.
        """
        if self.cap or not self.entries:
            return ""
        if self.why_no_cap:
            return self.why_no_cap
        first = self.entries[0].unit
        if first.is_row:
            return f"a cap can protect only single rows: run 1 protected {first}"
        return f'a cap can protect only each "{first.column}": run 1 protected it'

    @property
    def why_no_cap(self) -> str:
        """Why no cap can count the earlier runs, in words; "" if one can."""
        for number, run in enumerate(self.entries, 1):
            first = self.entries[0].unit
            if not run.private:
                return f"no cap is possible: run {number} was not private"
            if not (protects(run.unit, first) or protects(first, run.unit)):
                return (
                    f"no cap is possible: run 1 protected {first}, but run {number} protected "
                    f"{run.unit}"
                )
        return ""

    @property
    def overspent(self) -> list[str]:
        """Of "ε" and "δ", what was spent before the cap in a larger amount than it allows.

        If there is any, every run is refused until the cap is raised.
        """
        if self.cap is None:
            return []
        amounts = {
            "ε": (self.spent_epsilon, self.cap.epsilon),
            "δ": (self.spent_delta, self.cap.delta),
        }
        return [symbol for symbol, (spent, cap) in amounts.items() if spent > cap]


def ending(error: BaseException) -> Ending:
    """How a run ended, by the error that ended it."""
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"


def canonical(entry: Entry) -> str:
    """The JSON text of an entry, which is hashed and stored."""
    content = {"kind": entry.kind, **asdict(entry)}
    if "holder" in content:
        holder = content.pop("holder")
        content[_HOLDER] = {_BUDGET_ID: holder.pop("budget_id"), **holder}
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse(content: str) -> Entry:
    """The entry with this JSON text."""
    fields = json.loads(content)
    kind = fields.pop("kind")
    if kind == Closing.kind:
        return Closing(**fields)
    known = fields.pop(_HOLDER)
    holder = Holder(known.pop(_BUDGET_ID), **known)
    if kind == Moved.kind:
        return Moved(holder=holder, **fields)
    if kind == Retired.kind:
        return Retired(holder=holder, **fields)
    fields["unit"] = PrivacyUnit(**fields["unit"])
    if kind == Cap.kind:
        return Cap(holder=holder, **fields)
    return Debit(holder=holder, **fields | {"plan": tuple(fields["plan"])})
