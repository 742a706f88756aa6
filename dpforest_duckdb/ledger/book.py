"""The budget ledger: what was asked of each private table, in a SQLite file of its own.

A run is debited in full, and committed, before any private row is read; nothing is given back.
The file is append-only: every entry carries the hash of the entry before it, and each operation
checks the whole chain. Whoever can write the file can still replace it whole, so the caller anchors
`Ledger.head` in the database and asks `Ledger.holds` about it.

Amounts are integers: ε in nano-ε, δ in atto-δ (see `units`). Every entry counts under one unit and
one neighbour relation. Entries hold a plan, never an outcome; closing a run records no time, since
how long it took rests on private rows.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Literal

from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.privacy.amounts import ATTO, NANO, show
from dpforest_duckdb.privacy.unit import PrivacyUnit

Outcome = Literal["done", "failed"]
State = Literal["open", "done", "failed"]
_WAIT_SECONDS = 30.0
_APPLICATION = 0x64706664  # "dpfd": tells a ledger from any other SQLite file
_LAYOUT = 1
_SCHEMA = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, content TEXT NOT NULL,"
    " previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # INSERT OR REPLACE removes a row without firing a DELETE trigger.
    "CREATE TRIGGER only_append BEFORE INSERT ON entries"
    " WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM entries)"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)
_IN_USE = "is in use by another process; try again when that one has ended"
_UNREACHABLE = (
    "cannot be opened or created; check that its folder exists and is writable, "
    "or name another place with --ledger"
)
_FOREIGN = (
    "is not a dpforest ledger, or no longer; restore it from a backup, "
    "or name another place with --ledger"
)
_DAMAGED = "is damaged; restore it from a backup"
_TROUBLE = {
    "BUSY": _IN_USE,
    "LOCKED": _IN_USE,
    "CANTOPEN": _UNREACHABLE,
    "PERM": _UNREACHABLE,
    "READONLY": "cannot be written; make the file and its folder writable",
    "FULL": "cannot be written because the disk is full; free some space and try again",
    "IOERR": "cannot be read or written; check the disk and try again",
    "NOTADB": _FOREIGN,
}


@dataclass(frozen=True)
class Table:
    """A table as the ledger knows it.

    `dataset` is the opaque id that its budget hangs on. `name` is for people only, and `place`
    ("path::schema.table") is what `Ledger.find` looks up.
    """

    dataset: str
    name: str
    place: str


@dataclass(frozen=True)
class Cap:
    """The most that may ever be spent on a table: nano-ε and atto-δ, for one unit."""

    kind: ClassVar[str] = "cap"
    seq: int
    time: str
    table: Table
    epsilon: int
    delta: int
    unit: PrivacyUnit


@dataclass(frozen=True)
class Run:
    """A debit in nano-ε and atto-δ; it counts whatever became of the run (`state`)."""

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


@dataclass(frozen=True)
class Closing:
    """How the run with sequence number `run` ended."""

    kind: ClassVar[str] = "close"
    seq: int
    run: int
    state: Outcome


Entry = Cap | Run | Closing


@dataclass(frozen=True)
class Budget:
    """What one table may spend and has spent, in nano-ε and atto-δ; oldest entry first."""

    caps: tuple[Cap, ...]
    entries: tuple[Run, ...]

    @property
    def cap(self) -> Cap | None:
        """The cap in force, or None."""
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

    @property
    def overspent(self) -> bool:
        """More was spent before the cap than it allows: every run is refused until it is raised."""
        return self.cap is not None and (
            self.spent_epsilon > self.cap.epsilon or self.spent_delta > self.cap.delta
        )


@dataclass
class _Chain:
    """The entries of a ledger with the rows that hold them: (seq, content, previous, hash)."""

    entries: list[Entry] = field(default_factory=list)
    rows: list[tuple[int, str, str, str]] = field(default_factory=list)

    @property
    def head(self) -> str:
        return self.rows[-1][3] if self.rows else ""

    @property
    def next(self) -> int:
        return len(self.rows) + 1

    def row(self, content: str) -> tuple[int, str, str, str]:
        """The one row that may come next with this content."""
        digest = hashlib.sha256(f"{self.head}\n{content}".encode()).hexdigest()
        return self.next, content, self.head, digest

    def add(self, entry: Entry) -> None:
        self.rows.append(self.row(_canonical(entry)))
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
                else:
                    runs[entry.seq] = entry
        return Budget(tuple(caps), tuple(runs.values()))


class Ledger:
    """The ledger at `path`; nothing is created before the first write, a missing file is empty.

    Every operation opens and closes a connection of its own, so that threads and processes may
    share a ledger. Each one raises `DpforestError` when the file cannot be used or does not follow
    from itself, and then has written nothing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()

    def budget(self, dataset: str) -> Budget:
        """Cap and spending of a dataset; empty for one that was never seen."""
        return self._read().budget(dataset)

    def set_cap(
        self, table: Table, epsilon: int, delta: int, unit: PrivacyUnit, *, raise_cap: bool = False
    ) -> Budget:
        """Cap a table at nano-ε and atto-δ and return its budget; what is spent already counts.

        A cap below what is spent stands, leaves nothing and shows as `Budget.overspent`.
        Raises `BudgetError` for a higher cap without `raise_cap`, for another unit than the old
        cap's, and when earlier runs had another unit or were not private.
        """
        _check_amounts(epsilon, delta)
        with self._writing() as chain:
            cap = Cap(chain.next, _now(), table, epsilon, delta, unit)
            _check_cap(cap, chain.budget(table.dataset), raise_cap)
            chain.add(cap)
        return chain.budget(table.dataset)

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
        """Spend nano-ε and atto-δ on one run, committed on return; gives the run's number.

        `plan` is JSON: the planned queries. Raises `BudgetError`, and spends nothing, when the cap
        does not allow the run, counts another unit, or the run is not private. Without a cap the
        spending is recorded all the same.
        """
        _check_amounts(epsilon, delta)
        with self._writing() as chain:
            run = Run(
                seq=chain.next,
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
            _check_run(run, chain.budget(table.dataset))
            chain.add(run)
        return run.seq

    def close_run(self, run: int, state: Outcome) -> None:
        """Record how an open run ended. Raises `DpforestError` for any other number."""
        with self._writing() as chain:
            opened = {entry.seq for entry in chain.entries if isinstance(entry, Run)}
            closed = {entry.run for entry in chain.entries if isinstance(entry, Closing)}
            if run not in opened - closed:
                raise self._error(
                    f"has no open run {run}; it was closed before, or debited elsewhere"
                )
            chain.add(Closing(chain.next, run, state))

    def head(self) -> str:
        """The hash of the last entry, to be anchored in the database; "" for an empty ledger."""
        return self._read().head

    def holds(self, anchor: str) -> bool:
        """Whether this ledger continues the one whose `head` was `anchor`.

        False means that it was truncated, restored or replaced. Every ledger continues the empty
        one, so "" is always held.
        """
        return not anchor or any(row[3] == anchor for row in self._read().rows)

    def verify(self) -> None:
        """Raise `DpforestError` unless every entry follows from the one before it."""
        self._read()

    def find(self, place: str) -> str | None:
        """The dataset id last seen at a place, for databases that cannot hold an anchor."""
        for entry in reversed(self._read().entries):
            if not isinstance(entry, Closing) and entry.table.place == place:
                return entry.table.dataset
        return None

    def _read(self) -> _Chain:
        try:
            self.path.stat()
        except FileNotFoundError:
            return _Chain()
        except OSError:
            raise self._error(_UNREACHABLE) from None
        # Not mode=ro: after a crash the next reader has to roll the journal back.
        with self._connection("rw") as connection:
            connection.execute("BEGIN")
            return self._load(connection) if self._has_layout(connection) else _Chain()

    @contextmanager
    def _writing(self) -> Iterator[_Chain]:
        """The chain under the write lock; what the block adds to it is committed at its end."""
        with self._connection("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not self._has_layout(connection):
                _create_layout(connection)
            chain = self._load(connection)
            known = len(chain.rows)
            yield chain
            connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", chain.rows[known:])
            connection.execute("COMMIT")

    @contextmanager
    def _connection(self, mode: str) -> Iterator[sqlite3.Connection]:
        """A connection whose open transaction is rolled back at the end, and whose errors speak."""
        try:
            with closing(
                sqlite3.connect(
                    f"{self.path.as_uri()}?mode={mode}",
                    timeout=_WAIT_SECONDS,
                    isolation_level=None,
                    uri=True,
                )
            ) as connection:
                # FULL, and the folder synced too: else a power cut just after the commit can bring
                # the rollback journal back, and with it a debit that is spent but not recorded.
                connection.execute("PRAGMA synchronous=EXTRA")
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLITE_IOERR_WRITE → IOERR; only text that is not UTF-8 gives an error without a name.
            name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
            raise self._error(_TROUBLE.get(name.split("_")[1], _DAMAGED)) from None

    def _has_layout(self, connection: sqlite3.Connection) -> bool:
        """False for an empty file; raises unless anything else has exactly our layout."""
        found = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")]
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if not found and application == 0:
            return False
        if application != _APPLICATION:
            raise self._error(_FOREIGN)
        if layout > _LAYOUT:
            raise self._error("was written by a newer dpforest-duckdb; update the package")
        if sorted(map(str, found)) != sorted(_SCHEMA):
            raise self._error(
                "has been changed: its tables or triggers are not as they were made; "
                "restore it from a backup"
            )
        return True

    def _load(self, connection: sqlite3.Connection) -> _Chain:
        """Read the chain, checking that each entry is what follows from the one before it."""
        chain = _Chain()
        for row in connection.execute(
            "SELECT seq, content, previous, hash FROM entries ORDER BY seq"
        ):
            if row != chain.row(row[1]):
                before = f"entry {chain.next - 1}" if chain.rows else "an empty ledger"
                raise self._error(
                    f"has been changed: entry {chain.next} does not follow from {before}; "
                    "restore it from a backup"
                )
            try:
                chain.entries.append(_parse(row[1]))
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
                raise self._error(_DAMAGED) from None
            chain.rows.append(row)
        return chain

    def _error(self, what: str) -> DpforestError:
        return DpforestError(f"The ledger at {self.path} {what}.")


def _create_layout(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={_APPLICATION}")
    connection.execute(f"PRAGMA user_version={_LAYOUT}")


def _check_amounts(epsilon: int, delta: int) -> None:
    # A float, NaN or negative amount would get past every comparison with a cap.
    if type(epsilon) is not int or type(delta) is not int or epsilon < 1 or not 0 <= delta < ATTO:
        raise UsageError(
            "A budget must be a whole number of nano-ε above zero and of atto-δ from 0 to below 1."
        )


def _check_cap(new: Cap, budget: Budget, raise_cap: bool) -> None:
    old, name = budget.cap, new.table.name
    if old and old.unit != new.unit:
        raise BudgetError(
            f'Refused: the cap of table "{name}" protects {old.unit}, '
            f"and that cannot be changed to {new.unit}."
        )
    for run in budget.entries:
        if not run.private:
            raise BudgetError(
                f'Refused: run {run.seq} on table "{name}" was not private, so no cap can count it.'
            )
        if run.unit != new.unit:
            raise BudgetError(
                f'Refused: run {run.seq} on table "{name}" protected {run.unit}, '
                f"so a cap that protects {new.unit} cannot count it."
            )
    if old and not raise_cap:
        _check_not_raised("ε", NANO, old.epsilon, new.epsilon, name)
        _check_not_raised("δ", ATTO, old.delta, new.delta, name)


def _check_not_raised(symbol: str, scale: int, old: int, new: int, name: str) -> None:
    if new > old:
        raise BudgetError(
            f'Refused: table "{name}" has a cap of {symbol} = {show(old, scale)}; '
            f"add --raise if it is to become {show(new, scale)}."
        )


def _check_run(run: Run, budget: Budget) -> None:
    cap, name = budget.cap, run.table.name
    if cap is None:
        return
    if not run.private:
        raise BudgetError(
            f'Refused: table "{name}" has a cap, and a run that is not private cannot be counted '
            "against it."
        )
    if run.unit != cap.unit:
        raise BudgetError(
            f'Refused: the cap of table "{name}" protects {cap.unit}, '
            f"but this run would protect {run.unit}: see --privacy-unit and --rows-per-unit."
        )
    _check_left("ε", NANO, run.epsilon, budget.spent_epsilon, cap.epsilon, name)
    _check_left("δ", ATTO, run.delta, budget.spent_delta, cap.delta, name)


def _check_left(symbol: str, scale: int, asked: int, spent: int, cap: int, name: str) -> None:
    if spent + asked > cap:
        raise BudgetError(
            f"Refused: this run needs {symbol} = {show(asked, scale)} but only "
            f"{show(max(0, cap - spent), scale)} of the cap of {show(cap, scale)} is left "
            f'for table "{name}".'
        )


def _canonical(entry: Entry) -> str:
    return json.dumps(
        {"kind": entry.kind, **asdict(entry)},
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )


def _parse(content: str) -> Entry:
    fields = json.loads(content)
    kind = fields.pop("kind")
    if kind == Closing.kind:
        return Closing(**fields)
    fields["table"] = Table(**fields["table"])
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
