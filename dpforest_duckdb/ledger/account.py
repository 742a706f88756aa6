"""The account of a table: its identity, its ledger, and the anchor in the database.

A table's comment carries its id, the head of the ledger's hash chain and its cap, on a line after
the user's own text. A comment follows the table through renames and copies of the database. Every
write to the ledger is decided under the ledger's lock, from the comment and the entries at that
time; an earlier plan fixes neither id nor cap. `docs/privacy.md` says what someone who can write
the files can still undo.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo, columns_changed
from dpforest_duckdb.errors import (
    BudgetError,
    DebitStaysError,
    DpforestError,
    UnanchoredWarning,
    after_debit,
    warn,
)
from dpforest_duckdb.ledger.accounts import KeptAccount
from dpforest_duckdb.ledger.anchor import Anchor, Home, StoredComment, UnanchoredError
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import (
    NO_FILE,
    Budget,
    Cap,
    Charge,
    Debit,
    Entry,
    Holder,
    folded,
    table_place,
)
from dpforest_duckdb.ledger.note import Note, has_note, note_in
from dpforest_duckdb.ledger.vanished import (
    may_be_renamed,
    refuse_without_unit,
    vanished_named,
    vanished_tables,
)
from dpforest_duckdb.privacy.unit import PrivacyUnit

# The comment is committed just after the ledger. Writers of one database are threads of one
# process, so this keeps another thread from meeting a comment that is not committed yet.
_ONE_WRITER = threading.Lock()

T = TypeVar("T")


class OtherLedgerError(DpforestError):
    """The ledger does not hold this table's budget, or not its last debit."""


@dataclass(frozen=True)
class Account(KeptAccount):
    """The budget of one base table: all spending on it goes through here.

    `home` is the place of the table's database for the ledger ("" beside the ledger), and `info`
    the table as it was when the account was opened. `passed_over` is the ledger beside the
    database, if this is another one.
    """

    engine: Anchor
    info: TableInfo
    ledger: Ledger
    home: str
    writable: bool
    passed_over: Path | None = None

    @staticmethod
    def of(engine: Anchor, info: TableInfo, ledger: str | Path | None = None) -> Account:
        """The account of a table; without `ledger`, the ledger is beside the table's database.

        Raises `DpforestError` for a database in memory without a ledger, and `OtherLedgerError` for
        a ledger that does not have the table's last debit.
        """
        place = engine.home(info.catalog)
        book, home = _book_of(place, ledger)
        other = Path(f"{place.path}.ledger") if place.path and home else None
        account = Account(engine, info, book, home, not place.read_only, other)
        account._refuse_other_cap(info)
        account._known_id(book.read(), info)
        return account

    @property
    def noun(self) -> str:
        """What the budget belongs to, for people."""
        return "table"

    @property
    def display(self) -> str:
        """The name for people."""
        return self.info.display

    @property
    def columns(self) -> Collection[str]:
        """The columns of the table when the account was opened."""
        return self.info.columns

    def budget(self, seen: TableInfo | None = None) -> Budget:
        """Cap and spending of the table: as it is now, or as a transaction has `seen` it.

        Raises `BudgetError` if it may be a vanished capped table under a new name.
        """
        info = seen or self.seen_now()
        chain = self.ledger.read()
        return chain.budget(self._identify(chain, info).budget_id)

    def debit(self, charge: Charge) -> tuple[int, ...]:
        """Spend on the table, committed before this returns; the run's number, in a tuple.

        Raises `BudgetError` or `DpforestError`, and spends nothing, if the cap does not allow the
        run, the table is not the planned one, or its comment cannot be written. Warns with
        `UnanchoredWarning` if the database is read-only.
        """

        def spend(chain: Chain, info: TableInfo) -> tuple[tuple[int, ...], Holder]:
            if not info.has_columns_of(self.info):
                raise columns_changed(f'table "{info.display}"')
            self._refuse_other_cap(info)
            holder = self._identify(chain, info)
            self._refuse_unanchored(chain.cap(holder.budget_id), info)
            self._warn_if_read_only()
            return (chain.debit(holder, charge),), holder

        return self._enter(spend)

    def check(self, chain: Chain, charge: Charge, seen: TableInfo | None = None) -> None:
        """Raise what `debit` would raise about the budget; else add the run to `chain` only."""
        info = seen or self.seen_now()
        holder = self._identify(chain, info)
        self._refuse_unanchored(chain.cap(holder.budget_id), info)
        chain.debit(holder, charge)

    def refuse_replaced(self, runs: Sequence[int], seen: TableInfo | None) -> None:
        """Raise `DebitStaysError` if the rows may not be those of the table that `runs` debited.

        `seen` is the table that the rows come from, as the transaction that reads them sees it.
        Since the debit, its name may have been given to another table, or its columns changed.
        """
        if seen is None:
            return
        chain = self.ledger.read()
        budget_id = self._identify(chain, seen).budget_id
        others = any(chain.debited(run) != budget_id for run in runs)
        if others or not seen.has_columns_of(self.info):
            raise DebitStaysError(
                f'Table "{self.info.display}" was replaced or changed after the debit, before its '
                "rows were read: run again (the debit stays)."
            )

    def set_cap(self, epsilon: int, delta: int, unit: PrivacyUnit, *, raise_cap: bool) -> Budget:
        """Cap the table; the database must be writable, because it stores the cap too."""

        def cap(chain: Chain, info: TableInfo) -> tuple[Budget, Holder]:
            holder = self._identify(chain, info)
            chain.set_cap(holder, epsilon, delta, unit, raise_cap=raise_cap)
            return chain.budget(holder.budget_id), holder

        self._refuse_read_only()
        return self._enter(cap)

    def move_from(self, vanished: str) -> Budget:
        """Continue the budget of a vanished table, which this table is under a new name.

        `vanished` is its old name. Raises `DpforestError` if no capped table of that name has
        vanished, or if this table has a budget already.
        """

        def move(chain: Chain, info: TableInfo) -> tuple[Budget, Holder]:
            if self._known_id(chain, info):
                raise DpforestError(
                    f'Table "{info.display}" has a budget already, its own or the one that you '
                    "want to move: show it with dpforest budget."
                )
            lost = self._vanished_named(chain, vanished)
            refuse_without_unit(chain.cap(lost.budget_id), lost, info)
            holder = Holder(lost.budget_id, info.display, self._place)
            chain.move(holder)
            return chain.budget(holder.budget_id), holder

        self._refuse_read_only()
        return self._enter(move)

    def _enter(self, enter: Callable[[Chain, TableInfo], tuple[T, Holder]]) -> T:
        """Add an entry to the ledger, and anchor it in the table's comment.

        `enter` gets the table as it is now, and adds to the entries. The comment is written before
        the ledger commits, so a conflict shows before anything is spent. The comment is committed
        after the ledger, because an anchor must never be ahead of its ledger.
        """
        entered: Entry | None = None
        try:
            with _ONE_WRITER, self.engine.stored_comment(self.info) as comment:
                with self.ledger.writing() as chain:
                    info = comment.read()
                    found, holder = enter(chain, info)
                    stored = self.writable and _store(
                        comment, _anchored(info.comment, chain, holder), chain, holder
                    )
                    newest = chain.entries[-1]
                entered = newest
                if stored and not comment.exclusive:
                    self._anchor_newest(comment, holder)
        except BaseException as error:
            if isinstance(entered, Debit):  # one that is not anchored
                with contextlib.suppress(DpforestError):
                    self.close_run((entered.seq,), "failed")
                if isinstance(error, DpforestError):
                    raise after_debit(error) from None
            raise
        return found

    def _anchor_newest(self, comment: StoredComment, holder: Holder) -> None:
        """Anchor the newest entry while no other process can add one.

        Else the anchor of an earlier entry could replace that of a later one, or its cap.
        """
        with self.ledger.writing() as chain:
            comment.write(_anchored(comment.read().comment, chain, holder))
            comment.commit()

    def seen_now(self) -> TableInfo:
        """The table as it is now. Read it before the ledger: another thread may add a debit between
        the two, and an anchor that the ledger does not know yet would look like another ledger's.
        """
        with self.engine.stored_comment(self.info) as comment:
            return comment.read()

    @property
    def _place(self) -> str:
        return table_place(self.info, self.home)

    def _known_id(self, chain: Chain, info: TableInfo) -> str | None:
        """The id of the table's budget, by its comment or by its place; None if it is new.

        Raises `OtherLedgerError` if comment and ledger contradict each other.
        """
        note = note_in(info)
        if note and chain.budget_id_at(note.head) != note.budget_id:
            gone = "" if self.ledger.path.exists() else " is not there, so it"
            raise OtherLedgerError(
                f"The ledger at {self.ledger.path}{gone} does not hold the last debit of table "
                f'"{info.display}": restore it, or name the right one with --ledger.'
            )
        budget_id = note.budget_id if note else chain.find(self._place, self.home)
        if note and note.cap and chain.cap(note.budget_id) is None:
            raise OtherLedgerError(
                f'The ledger at {self.ledger.path} has no cap for table "{info.display}", which '
                "has one: restore it, or name the right one with --ledger."
            )
        return budget_id

    def _identify(self, chain: Chain, info: TableInfo) -> Holder:
        """The table as the ledger knows it; a new table gets a new id.

        While a capped table has vanished, two kinds of tables are refused: those without an anchor,
        and those with the anchor of a table at another place. Each may be the vanished table, which
        was renamed without its comment or with the comment of another table.
        """
        budget_id = self._known_id(chain, info)
        anchored = note_in(info) is not None
        if not anchored or folded(chain.place_of(str(budget_id)) or "", self.home) != self._place:
            for lost in self._vanished(chain)[:1]:
                here = folded(lost.place, self.home) == self._place
                cap = chain.cap(lost.budget_id)
                raise may_be_renamed(lost, cap, info, new=budget_id is None, here=here)
        return Holder(budget_id or secrets.token_hex(16), info.display, self._place)

    def _vanished(self, chain: Chain) -> list[Holder]:
        return vanished_tables(chain, self.engine, self.info.catalog, self.home)

    def _vanished_named(self, chain: Chain, name: str) -> Holder:
        tables = self.engine.tables(self.info.catalog)
        return vanished_named(self._vanished(chain), name, tables)

    def _refuse_other_cap(self, info: TableInfo) -> None:
        """Raise `BudgetError` if the ledger that is passed over has a cap for the table's name.

        A table that was made again has lost the comment that says so.
        """
        other = self.passed_over
        if other is None or has_note(info.comment) or not other.exists():
            return
        capped: list[Holder] = []
        with contextlib.suppress(DpforestError):  # another file of that name is no ledger
            capped = Ledger(other).read().capped()
        if any(folded(holder.place, "") == table_place(info, "") for holder in capped):
            raise BudgetError(
                f'Refused: table "{info.display}" has a cap in the ledger {other}, but --ledger or '
                "DPFOREST_LEDGER names another: leave them out, or name that one."
            )

    def _refuse_unanchored(self, cap: Cap | None, info: TableInfo) -> None:
        """Raise `BudgetError` if the table cannot store a debit, or has a lower cap than its
        ledger.
        """
        note = note_in(info)
        if note and note.cap and cap and (cap.epsilon > note.cap[0] or cap.delta > note.cap[1]):
            raise BudgetError(
                f"Refused: the ledger at {self.ledger.path} has a higher cap for table "
                f'"{info.display}" than the table itself: set the cap again with dpforest budget '
                "set, or restore the ledger."
            )
        if cap and not self.writable:
            raise BudgetError(
                f'Refused: table "{self.info.display}" has a cap, and its database is read-only, '
                "so a debit cannot be recorded in it: make its file and folder writable, and in "
                "Python connect without read_only."
            )

    def _warn_if_read_only(self) -> None:
        if not self.writable:
            warn(
                f'The database of table "{self.info.display}" is read-only, so only the ledger '
                f"{self.ledger.path} has this debit: keep it, because runs with another ledger do "
                "not count it.",
                UnanchoredWarning,
            )

    def _refuse_read_only(self) -> None:
        if not self.writable:
            raise BudgetError(
                "The database is read-only, and a cap is stored in it too: make its file and "
                "folder writable, and in Python connect without read_only."
            )


def missing_tables(
    engine: Anchor, catalog: str, ledger: str | Path | None
) -> list[tuple[Holder, Budget]]:
    """The capped tables that have vanished from a database, and their budgets."""
    book, home = _book_of(engine.home(catalog), ledger)
    chain = book.read()
    lost = vanished_tables(chain, engine, catalog, home)
    return [(holder, chain.budget(holder.budget_id)) for holder in lost]


def retire_missing(
    engine: Anchor, catalog: str, ledger: str | Path | None, vanished: str
) -> Holder:
    """Record that a capped table of a database was dropped, so that it can no longer be a renamed
    one.

    Gives what was retired. Raises `DpforestError` as `Account.move_from` if none of that name is
    gone, and if all tables of the database have their budgets in other ledgers.
    """
    _refuse_other_ledger(engine, catalog, ledger)
    book, home = _book_of(engine.home(catalog), ledger)

    def named(chain: Chain) -> Holder:
        lost = vanished_tables(chain, engine, catalog, home)
        return vanished_named(lost, vanished, engine.tables(catalog))

    named(book.read())  # a refusal makes no ledger
    with book.writing() as chain:
        holder = named(chain)
        chain.retire(holder)
    return holder


def _refuse_other_ledger(engine: Anchor, catalog: str, ledger: str | Path | None) -> None:
    """Raise `DpforestError` if all tables of the database have their budgets in other ledgers."""
    refused = list[DpforestError]()
    for table in engine.tables(catalog):
        try:
            Account.of(engine, table, ledger)
            return
        except DpforestError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def _book_of(place: Home, ledger: str | Path | None) -> tuple[Ledger, str]:
    """The ledger of a database, and the place of the database for it ("" beside the ledger).

    Raises `DpforestError` for a database in memory without a ledger.
    """
    if ledger is None and not place.path:
        raise DpforestError(
            "A database in memory has no place for its budget: name one with --ledger."
        )
    default = Path(f"{place.path}.ledger")
    book = Ledger(ledger if ledger is not None else default)
    # a ledger beside its database moves with it, so its path identifies nothing
    if place.path and book.path.resolve() == default.resolve():
        return book, ""
    return book, str(Path(place.path).resolve()) if place.path else f"{NO_FILE}{fold(place.name)}"


def _store(comment: StoredComment, text: str, chain: Chain, holder: Holder) -> bool:
    """Store a text with an anchor as a table's comment, and return whether that worked.

    If nothing can ever be stored with the table: raises `UnanchoredError` if the table has a cap,
    else warns with `UnanchoredWarning`.
    """
    try:
        comment.write(text)
    except UnanchoredError as error:
        if chain.cap(holder.budget_id):
            raise
        warn(str(error), UnanchoredWarning)
        return False
    return True


def _anchored(comment: str, chain: Chain, holder: Holder) -> str:
    """A table's comment with id, head and cap after the user's text."""
    cap = chain.cap(holder.budget_id)
    note = Note(holder.budget_id, chain.head, (cap.epsilon, cap.delta) if cap else None)
    return note.after(comment)


def has_cap(engine: Anchor, info: TableInfo, ledger: str | Path | None) -> bool:
    """Whether a table has a cap, by its comment or by its ledger."""
    note = note_in(info)
    if note and note.cap:
        return True
    if ledger is None and not engine.home(info.catalog).path:
        return False
    return Account.of(engine, info, ledger).budget().cap is not None
