"""The budget of whatever one can train on: what `dpforest budget` does, for Python."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from dpforest_duckdb.arguments import PATH, TEXT, refuse_wrong_types
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.errors import DpforestError, PublicFactWarning, UsageError, in_python, warn
from dpforest_duckdb.ledger.account import Account, retire_missing
from dpforest_duckdb.ledger.accounts import KeptAccount
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Budget
from dpforest_duckdb.ledger.refusals import one_row_note, overspent_note
from dpforest_duckdb.privacy.amounts import atto_delta, nano_epsilon
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.training.opening import (
    Connection,
    Rows,
    find_dataset,
    find_engine,
    find_rows,
)

Amount = float | str | Decimal


def budget(
    con: Connection,
    table: Rows | None,
    *,
    ledger: str | Path | None = None,
    dataset: str | None = None,
) -> Budget:
    """What may be spent on some rows, and what was spent. No row is read.

    Arguments are as in `train`; with None as the table, the budget is that of the `dataset`, whose
    rows are not needed. `facts()` of what it gives has all amounts as numbers. Raises
    `DpforestError`, one sentence.
    """
    refuse_wrong_types(locals())
    account = _account(con, table, ledger, dataset)
    _warn_of(account.new_ledger or account.new_dataset)
    return account.budget()


@dataclass(frozen=True)
class KnownBudget:
    """A budget as a ledger knows it: of a table, a retired table, a file or a dataset (`kind`).

    `place` is the file that it is, or that it is in, or the catalogue of Spark; "" if none is
    known.
    """

    kind: str
    name: str
    place: str
    budget: Budget

    def facts(self) -> dict[str, Any]:
        """All of it as a JSON object, in ε and δ."""
        return {"kind": self.kind, "name": self.name, "place": self.place, **self.budget.facts()}


def budgets(ledger: str | Path) -> list[KnownBudget]:
    """All budgets that a ledger holds, in the order of their first entries. No database is opened.

    Raises `DpforestError`, one sentence, if there is no such ledger.
    """
    refuse_wrong_types(locals(), ledger=PATH)
    book = Ledger(ledger)
    if not book.path.exists():
        raise DpforestError(f"There is no ledger {ledger}: check --ledger.")
    chain = book.read()
    # where tables are that have no other place; nobody knows of a ledger that was renamed
    beside = str(book.path.with_suffix("")) if book.path.suffix == ".ledger" else ""
    retired, holders = chain.retired(), chain.holders()
    found = chain.budgets(holder.budget_id for holder in holders)
    return [
        KnownBudget(
            kind="retired table" if holder.budget_id in retired else holder.noun,
            name=holder.name,
            place=beside if holder.where == "" and holder.is_table else holder.where,
            budget=found[holder.budget_id],
        )
        for holder in holders
    ]


def set_budget(
    con: Connection,
    table: Rows | None,
    *,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    privacy_unit: str | None = None,
    rows_per_unit: int | None = None,
    raise_cap: bool = False,
    ledger: str | Path | None = None,
    dataset: str | None = None,
) -> Budget:
    """Cap what may be spent on some rows, for each privacy unit. No row is read.

    Parameters
    ----------
    con, table, ledger, dataset : as in `train`; None as the table needs a dataset, not its rows.
    epsilon, delta : the most that may be spent; by default those of the present cap.
    privacy_unit, rows_per_unit : whom the cap protects; by default the unit of the present cap, or
        of all earlier runs, or else each row. One row of each unit if nothing says how many.
    raise_cap : allow a cap that is higher than the present one, or may protect less.

    Raises `DpforestError`, one sentence. Warns if more is spent already than the cap allows, and if
    it allows one row of each unit because you named no number.

    >>> import duckdb, tempfile
    >>> con = duckdb.connect()
    >>> _ = con.execute("CREATE TABLE visits (age INTEGER)")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = set_budget(con, "visits", epsilon=2, ledger=f"{folder}/ledger")
    ...     found.facts()["left"]
    2.0
    """
    refuse_wrong_types(locals())
    account = _account(con, table, ledger, dataset)
    _warn_of(account.new_dataset)
    found = set_cap(account, epsilon, delta, privacy_unit, rows_per_unit, raise_cap=raise_cap)
    _warn_of(overspent_note(found))
    if rows_per_unit is None:
        _warn_of(one_row_note(found))
    return found


def move_budget(
    con: Connection, table: str, to: str, *, ledger: str | Path | None = None
) -> Budget:
    """Continue the budget of a capped table that was renamed, under its new name. No row is read.

    Parameters
    ----------
    con, ledger : as in `train`.
    table : the old name, of a capped table that is gone.
    to : the name that the table has now. It may have no budget of its own.

    Gives the budget. Raises `DpforestError`, one sentence, if no capped table of the old name is
    gone, or if the table of the new name has a budget.

    >>> import duckdb, tempfile
    >>> con = duckdb.connect()
    >>> _ = con.execute("CREATE TABLE visits (age INTEGER)")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = set_budget(con, "visits", epsilon=2, ledger=f"{folder}/ledger")
    ...     _ = con.execute("CREATE TABLE stays AS FROM visits; DROP TABLE visits")
    ...     move_budget(con, "visits", "stays", ledger=f"{folder}/ledger").facts()["cap"]
    2.0
    """
    refuse_wrong_types(locals(), table=TEXT, to=TEXT)
    engine = find_engine(con, ledger)
    account = Account.of(engine, engine.table(to, option="--to"), ledger)
    _warn_of(account.new_ledger)
    return account.move_from(table)


def retire_budget(con: Connection, table: str, *, ledger: str | Path | None = None) -> None:
    """Record that a capped table was dropped, so that other tables can be used again.

    The ledger keeps what was spent on it. Arguments are as in `move_budget`. No row is read. Raises
    `DpforestError`, one sentence, if no capped table of that name is gone.
    """
    refuse_wrong_types(locals(), table=TEXT)
    engine = find_engine(con, ledger)
    retire_missing(engine, engine.catalog, ledger, table)


def _account(
    con: Connection, table: Rows | None, ledger: str | Path | None, dataset: str | None
) -> KeptAccount:
    """The account of rows, or with None as the table that of a dataset by its name alone."""
    if table is None:
        return find_dataset(con, ledger, dataset)
    return find_rows(con, table).account(ledger, dataset)


def _warn_of(sentence: str) -> None:
    """Warn of what a sentence says, unless it is empty."""
    if sentence:
        warn(in_python(sentence), PublicFactWarning)


def _usual_unit(budget: Budget, columns: Collection[str] | None) -> PrivacyUnit | None:
    """The unit of the present cap, or of all runs if its column is still there."""
    unit, known = budget.usual_unit, set(map(fold, columns or ()))
    if budget.cap or unit is None or columns is None or set(map(fold, unit.columns)) <= known:
        return unit
    return None


def set_cap(
    account: KeptAccount,
    epsilon: Amount | None,
    delta: Amount | None,
    privacy_unit: str | None,
    rows_per_unit: int | None,
    *,
    raise_cap: bool,
) -> Budget:
    """Set the cap of an account. An amount that is None stays as it is in the present cap.

    Without a present cap, the privacy unit is that of all earlier runs by default, if these agree.
    Raises `UsageError` if there is no ε in either, and `BudgetError` as `KeptAccount.set_cap`.
    """
    budget = account.budget()
    old = budget.cap
    if epsilon is None and old is None:
        raise UsageError(f"The {account.noun} has no cap yet: name one with --epsilon.")
    kept_epsilon, kept_delta = (old.epsilon, old.delta) if old else (0, 0)
    return account.set_cap(
        kept_epsilon if epsilon is None else nano_epsilon(epsilon),
        kept_delta if delta is None else atto_delta(delta),
        account.unit_like(_usual_unit(budget, account.columns), privacy_unit, rows_per_unit),
        raise_cap=raise_cap,
    )
