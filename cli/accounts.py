"""Which tables of a database a command means, if it names none: those with a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpforest_duckdb.errors import BudgetError, DpforestError
from dpforest_duckdb.ledger.account import Account, missing_tables
from dpforest_duckdb.ledger.entries import Budget, Holder

if TYPE_CHECKING:
    from dpforest_duckdb.engine.spark.engine import SparkEngine
    from dpforest_duckdb.engine.tables.engine import DuckDBEngine

    AnyEngine = DuckDBEngine | SparkEngine


def known_accounts(
    engine: AnyEngine, ledger: str | None
) -> tuple[list[Account], list[tuple[Holder, Budget]], list[DpforestError]]:
    """The accounts of the tables that have a budget, or of all tables if none has one.

    Also the capped tables that are missing, and the errors of tables whose budget is not known; of
    those that may be a missing table, only the first, which counts the others. Raises the first of
    all if nothing is known.
    """
    opened, accounts, known = list[Account](), list[Account](), list[Account]()
    errors = list[DpforestError]()
    for table in engine.tables(engine.catalog):
        try:
            account = Account.of(engine, table, ledger)
            opened.append(account)
            if account.budget() != Budget((), ()):
                known.append(account)
            accounts.append(account)
        except DpforestError as error:
            errors.append(error)
    # a ledger that no account has may be the wrong one
    missing = missing_tables(engine, engine.catalog, ledger) if opened or not errors else []
    if errors and not known and not missing:
        raise errors[0]
    renamed = [error for error in errors if isinstance(error, BudgetError)]
    found = known or ([] if missing else accounts)
    if len(renamed) > 1:
        others = "another table" if len(renamed) == 2 else f"{len(renamed) - 1} other tables"
        first = BudgetError(f"{renamed[0].sentence} The same may be true of {others}.")
        errors = [first, *(error for error in errors if error not in renamed)]
    return found, missing, errors
