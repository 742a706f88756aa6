"""The entries of a ledger in their order, chained by hashes; all of it is computed in memory.

`dpforest_duckdb.ledger.book` stores them in a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.entries import (
    Budget,
    Cap,
    Charge,
    Closing,
    Debit,
    Ending,
    Entry,
    Holder,
    Moved,
    Retired,
    canonical,
    folded,
)
from dpforest_duckdb.ledger.refusals import check_amounts, check_cap, check_debit
from dpforest_duckdb.privacy.unit import PrivacyUnit


@dataclass
class Chain:
    """The entries of a ledger with the rows that hold them: (seq, content, previous, hash).

    `runs` are the debits by their numbers, each with its ending if it has one.
    """

    entries: list[Entry] = field(default_factory=list)
    rows: list[tuple[int, str, str, str]] = field(default_factory=list)
    runs: dict[int, Debit] = field(default_factory=dict)

    def copy(self) -> Chain:
        """The same entries; additions to one are not in the other."""
        return Chain(self.entries.copy(), self.rows.copy(), self.runs.copy())

    @property
    def head(self) -> str:
        """The hash of the last entry, to be stored with the table; "" for an empty ledger."""
        return self.rows[-1][3] if self.rows else ""

    @property
    def placed(self) -> list[Cap | Debit | Moved | Retired]:
        """The entries that name a holder: all but those that close a run."""
        return [entry for entry in self.entries if not isinstance(entry, Closing)]

    @property
    def next(self) -> int:
        return len(self.rows) + 1

    def row(self, content: str) -> tuple[int, str, str, str]:
        """The only row that may come next with this content."""
        return self.next, content, self.head, _digest(self.head, content)

    def add(self, entry: Entry) -> None:
        """Add the next entry. Raises what `check` raises."""
        self.check(entry)
        self._append(entry, self.row(canonical(entry)))

    def load(self, entry: Entry, row: tuple[int, str, str, str]) -> None:
        """Add the next entry of a file with the row that holds it. Raises what `check` raises."""
        self.check(entry)
        self._append(entry, row)

    def check(self, entry: Entry) -> None:
        """Raise `DpforestError` if an entry cannot come next.

        It may have another number, an amount that is no budget, or end a run that is not open.
        """
        if entry.seq != self.next:
            raise DpforestError(f"Entry {self.next} of the ledger has another number.")
        if isinstance(entry, Closing):
            run = self.runs.get(entry.run)
            if run is None or run.state != "open":
                raise DpforestError(
                    f"The ledger has no open run {entry.run}; it was closed before, or debited "
                    "elsewhere."
                )
        elif isinstance(entry, Cap | Debit):
            check_amounts(entry.epsilon, entry.delta)

    def _append(self, entry: Entry, row: tuple[int, str, str, str]) -> None:
        if isinstance(entry, Debit):
            self.runs[entry.seq] = entry
        elif isinstance(entry, Closing):
            self.runs[entry.run] = replace(self.runs[entry.run], state=entry.state)
        self.rows.append(row)
        self.entries.append(entry)

    def budget(self, budget_id: str) -> Budget:
        """The caps and the runs of a budget, each run with its ending if it has one."""
        return self.budgets([budget_id])[budget_id]

    def budgets(self, budget_ids: Iterable[str]) -> dict[str, Budget]:
        """Several budgets by their ids."""
        caps: dict[str, list[Cap]] = {budget_id: [] for budget_id in budget_ids}
        runs: dict[str, list[Debit]] = {budget_id: [] for budget_id in caps}
        for entry in self.entries:
            if isinstance(entry, Cap) and entry.holder.budget_id in caps:
                caps[entry.holder.budget_id].append(entry)
        for run in self.runs.values():
            if run.holder.budget_id in runs:
                runs[run.holder.budget_id].append(run)
        return {each: Budget(tuple(caps[each]), tuple(runs[each])) for each in caps}

    def cap(self, budget_id: str) -> Cap | None:
        """The present cap of a budget, or None."""
        return self.budget(budget_id).cap

    def released(self, forest: str, runs: Collection[int] | None = None) -> bool:
        """Whether a private run, one of `runs` if they are given, released the forest with this
        hash.
        """
        private = {run.seq for run in self.runs.values() if run.private}
        if runs is not None:
            private &= set(runs)
        return bool(forest) and any(
            entry.forest == forest and entry.run in private
            for entry in self.entries
            if isinstance(entry, Closing)
        )

    def budget_id_at(self, head: str) -> str | None:
        """The budget's id in the entry whose hash is `head`; None if this ledger does not have it.

        Then the ledger was cut off, restored or replaced after `head` was stored with the table.
        """
        for row, entry in zip(self.rows, self.entries, strict=True):
            if row[3] == head and not isinstance(entry, Closing):
                return entry.holder.budget_id
        return None

    def debited(self, run: int) -> str | None:
        """The id of the budget that a run was debited from."""
        debit = self.runs.get(run)
        return None if debit is None else debit.holder.budget_id

    def place_of(self, budget_id: str) -> str | None:
        """Where the holder of a budget was last seen."""
        found = (e.holder.place for e in reversed(self.placed) if e.holder.budget_id == budget_id)
        return next(found, None)

    def find(self, place: str, home: str | None = None) -> str | None:
        """The budget's id last seen at a place, for what cannot store it; None for a new one.

        The place of a table is a `folded` one, in the database at `home`.
        """
        for entry in reversed(self.placed):
            known = entry.holder.place
            if (known if home is None else folded(known, home)) == place:
                return entry.holder.budget_id
        return None

    def holders(self) -> list[Holder]:
        """Whatever has a budget, as it was last seen; also tables that are retired."""
        return list({entry.holder.budget_id: entry.holder for entry in self.placed}.values())

    def capped(self) -> list[Holder]:
        """Where each holder of a cap was last seen; those that are retired are left out."""
        caps = {entry.holder.budget_id for entry in self.placed if isinstance(entry, Cap)}
        wanted = caps - self.retired()
        return [holder for holder in self.holders() if holder.budget_id in wanted]

    def retired(self) -> set[str]:
        """The budgets' ids of the tables that are retired: a later entry brings one back."""
        last = {entry.holder.budget_id: entry for entry in self.placed}
        return {budget_id for budget_id, entry in last.items() if isinstance(entry, Retired)}

    def set_cap(
        self, holder: Holder, epsilon: int, delta: int, unit: PrivacyUnit, *, raise_cap: bool
    ) -> None:
        """Cap a holder at nano-ε and atto-δ; earlier spending counts.

        A cap below what is spent is accepted, leaves nothing, and shows as `Budget.overspent`.
        Raises `BudgetError` for a higher cap without `raise_cap`, for another unit than the old
        cap's once something is spent, and if earlier runs had another unit or were not private.
        """
        cap = Cap(self.next, _now(), holder, epsilon, delta, unit)
        check_cap(cap, self.budget(holder.budget_id), raise_cap=raise_cap)
        self.add(cap)

    def debit(self, holder: Holder, charge: Charge) -> int:
        """Debit a holder with what a run costs; the run's number.

        Raises `BudgetError`, and spends nothing, if the cap does not allow the run, is for another
        unit, or the run is not private. Without a cap the spending is recorded.
        """
        debit = Debit(
            **{each.name: getattr(charge, each.name) for each in fields(Charge)},
            seq=self.next,
            time=_now(),
            holder=holder,
            versions=_versions(),
        )
        check_debit(debit, self.budget(holder.budget_id))
        self.add(debit)
        return debit.seq

    def close_run(self, run: int, state: Ending, forest: str = "") -> None:
        """Record how an open run ended, and the hash of its forest.

        Raises `DpforestError` for any other number.
        """
        self.add(Closing(self.next, run, state, forest))

    def move(self, holder: Holder) -> None:
        """Record that a budget continues at another place."""
        self.add(Moved(self.next, _now(), holder))

    def retire(self, holder: Holder) -> None:
        """Record that a table no longer exists."""
        self.add(Retired(self.next, _now(), holder))


def _digest(head: str, content: str) -> str:
    return hashlib.sha256(f"{head}\n{content}".encode()).hexdigest()


def _now() -> str:
    """The hour in UTC, for people to read: the order of entries is their sequence.

    Minutes would show how long the run before took, which depends on private rows.
    """
    return datetime.now(UTC).isoformat(timespec="hours")


@cache
def _versions() -> dict[str, str]:
    found = {}
    for package in ("dpforest-duckdb", "duckdb", "numpy", "opendp"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # run from a checkout, or opendp not installed
            continue
    return found
