"""What a run can be charged to: the account of a table, that of files or of a dataset, or none.

`account.py` has the first, `datasets.py` the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.errors import BudgetError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.ledger.entries import Budget, Charge, Ending
from dpforest_duckdb.privacy.unit import PrivacyUnit, requested_unit


@dataclass(frozen=True)
class NoAccount:
    """In the place of an account, for users without one: nothing is recorded or capped."""

    ledger: None = None
    display: str = "these rows"
    noun: str = "dataset"

    def budget(self, seen: object = None) -> Budget:
        return Budget((), ())

    def unit(self, column: str | None, rows: int | None) -> PrivacyUnit:
        return requested_unit(column, rows, cap=None, columns=(column or "",))

    def debit(self, charge: Charge) -> tuple[int, ...]:
        return ()

    def check(self, chain: Chain, charge: Charge) -> None:
        return None

    def refuse_other(self, runs: Sequence[int], seen: object) -> None:
        return None

    def close_run(self, runs: Sequence[int], state: Ending, forest: str = "") -> None:
        return None


AnyAccount = Account | DatasetAccount | NoAccount


def refuse_capped(account: AnyAccount, seen: TableInfo | None, sentence: str) -> None:
    """Raise `BudgetError` unless figures of the rows may be released without a debit.

    They may not be if the rows have a cap, which the sentence says, or come from a table or a file
    with a cap of its own: caps and views may have changed since the rows were found.
    """
    if account.budget(seen).cap:
        raise BudgetError(sentence)
    if isinstance(account, DatasetAccount):
        account.refuse_others()
