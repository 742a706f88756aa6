"""What a run can be charged to: the account of a table, that of files or of a dataset, or none.

`account.py` has the first, `datasets.py` the second. Whoever is given an account need not know
which of them it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.errors import BudgetError
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import Budget, Charge, Ending
from dpforest_duckdb.privacy.unit import PrivacyUnit, protects, requested_unit, single_rows


class AnyAccount(Protocol):
    """What a run can be charged to.

    `ledger` is None if nothing is recorded. What is said of an account is one sentence for people,
    or "". Every method may raise `DpforestError` for a ledger that cannot be used.
    """

    ledger: Ledger | None

    @property
    def noun(self) -> str:
        """What the budget belongs to, for people."""

    @property
    def display(self) -> str:
        """The name for people."""

    @property
    def rows_may_change(self) -> bool:
        """Whether other rows may have this budget later: a name that a user chose links them."""
        return False

    @property
    def columns(self) -> Collection[str] | None:
        """The columns that a privacy unit may be; None if they are not known."""
        return None

    @property
    def new_ledger(self) -> str:
        """Says that the ledger is new, if a wrong one would not be noticed."""
        return ""

    @property
    def new_dataset(self) -> str:
        """Says that the name is new, if it may be misspelt."""
        return ""

    @property
    def caution(self) -> str:
        """Says which of the same rows would have another budget."""
        return ""

    def budget(self, seen: TableInfo | None = None) -> Budget:
        """Cap and spending: as they are now, or of a table as a transaction has `seen` it."""

    def unit(self, column: str | None, rows: int | None) -> PrivacyUnit:
        """The privacy unit that is asked for; by default that of the present cap, else the row."""
        cap = self.budget().cap
        return self.unit_like(cap.unit if cap else None, column, rows)

    def unit_like(
        self, usual: PrivacyUnit | None, column: str | None, rows: int | None
    ) -> PrivacyUnit:
        """The privacy unit that is asked for; by default the `usual` one, else the row."""
        known = (column or "",) if self.columns is None else self.columns
        return requested_unit(column, rows, usual=usual, columns=known)

    def debit(self, charge: Charge) -> tuple[int, ...]:
        """Spend, committed before this returns; the numbers of the runs, one for each budget.

        Raises `BudgetError` or `DpforestError`, and spends nothing, if the run is not allowed.
        """

    def seen_now(self) -> TableInfo | None:
        """The table as it is now, if the budget is that of a table: see `check`."""
        return None

    def check(self, chain: Chain, charge: Charge, seen: TableInfo | None = None) -> None:
        """Raise what `debit` would raise about the budget; else add the run to `chain` only.

        `seen` is the table as it was before `chain` was read, by default as it is now.
        """

    def refuse_replaced(self, runs: Sequence[int], seen: TableInfo | None) -> None:
        """Raise `DpforestError` if the rows may not be those of the table that `runs` debited."""
        return None

    def refuse_capped_sources(self) -> None:
        """Raise `BudgetError` if the rows also come from a table or a file with a cap of its own.

        Views and caps may have changed since the rows were found.
        """
        return None

    def close_run(self, runs: Sequence[int], state: Ending, forest: str = "") -> None:
        """Record how the runs of a debit ended, and their forest's hash; nothing is refunded."""
        return None


class KeptAccount(AnyAccount, Protocol):
    """An account that a ledger keeps, so that it can be capped."""

    ledger: Ledger

    def set_cap(self, epsilon: int, delta: int, unit: PrivacyUnit, *, raise_cap: bool) -> Budget:
        """Cap the budget. Raises `BudgetError` as `Chain.set_cap`."""

    def close_run(self, runs: Sequence[int], state: Ending, forest: str = "") -> None:
        """Record the ends of all runs, or, with an error, of none."""
        with self.ledger.writing() as chain:
            for run in runs:
                chain.close_run(run, state, forest)


@dataclass(frozen=True)
class NoAccount(AnyAccount):
    """In the place of an account, for users without one: nothing is recorded or capped."""

    ledger: None = None
    display: str = "these rows"
    noun: str = "dataset"
    rows_may_change: bool = True

    def budget(self, seen: TableInfo | None = None) -> Budget:
        return Budget((), ())

    def debit(self, charge: Charge) -> tuple[int, ...]:
        return ()

    def check(self, chain: Chain, charge: Charge, seen: TableInfo | None = None) -> None:
        return None


def ruled_out(
    account: AnyAccount, budget: Budget, unit: PrivacyUnit, *, given: bool
) -> Iterator[str]:
    """Which caps a run for this unit rules out, in sentences; `given` says that it was named.

    `budget` is that of the account. Without a ledger there are no caps.
    """
    if account.ledger is None:
        return
    if unit.is_row and not given and not budget.entries:
        yield single_rows(account.noun)
    others = {str(run.unit) for run in budget.entries if not protects(run.unit, unit)}
    if others and not budget.cap and not budget.why_no_cap:  # with a cap, the debit is refused
        yield (
            f"Earlier runs protected {' or '.join(sorted(others))}; this one protects {unit}. "
            f"After it, this {account.noun} can never be capped, because a cap has one unit."
        )


def refuse_capped(account: AnyAccount, seen: TableInfo | None, sentence: str) -> None:
    """Raise `BudgetError` unless figures of the rows may be released without a debit.

    They may not be if the rows have a cap, which the sentence says, or come from a table or a file
    with a cap of its own.
    """
    if account.budget(seen).cap:
        raise BudgetError(sentence)
    account.refuse_capped_sources()
