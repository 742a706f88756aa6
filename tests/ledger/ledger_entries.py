"""Tables with entries in a ledger, and what refuses them."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from steps import charge

from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import BudgetError, DpforestError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.ledger.entries import Budget, Charge, Ending, Holder
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit

VISITS = Holder("0f3a", "visits", "/data/hospital.duckdb::main.visits")
PLAN = [{"query": "count_classes", "depth": 1, "epsilon": NANO}]


def debit(
    ledger: Ledger, epsilon: int, delta: int = 0, holder: Holder = VISITS, **changes: Any
) -> int:
    run: dict[str, Any] = {
        "unit": ROW,
        "recipe": "auto",
        "model": "readmission",
        "private": True,
        "plan": PLAN,
    }
    with ledger.writing() as chain:
        return chain.debit(holder, Charge(epsilon, delta, **run | changes))


def close_run(ledger: Ledger, run: int, state: Ending) -> None:
    with ledger.writing() as chain:
        chain.close_run(run, state)


def set_cap(
    ledger: Ledger, holder: Holder, epsilon: int, delta: int, unit: PrivacyUnit, **raised: bool
) -> Budget:
    with ledger.writing() as chain:
        chain.set_cap(holder, epsilon, delta, unit, **{"raise_cap": False} | raised)
    return chain.budget(holder.budget_id)


def sentence(caught: pytest.ExceptionInfo[DpforestError]) -> str:
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "Traceback" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


def refusal(ledger: Ledger, epsilon: int, delta: int = 0, **changes: Any) -> str:
    """The sentence of a refused debit, which must leave the ledger as it was."""
    before = ledger.read().head
    with pytest.raises(BudgetError) as caught:
        debit(ledger, epsilon, delta, **changes)
    assert ledger.read().head == before
    return sentence(caught)


def holds(ledger: Ledger, anchor: str) -> bool:
    """Whether the account of a table with this anchor accepts the ledger."""
    return ledger.read().budget_id_at(anchor) is not None


def account(con: duckdb.DuckDBPyConnection, table: str = "t", **options: Any) -> Account:
    """The budget of a table."""
    engine = DuckDBEngine(con)
    return Account.of(engine, engine.table(table), **options)


def spend(
    found: Account | DatasetAccount, epsilon: int = NANO, *, private: bool = True
) -> tuple[int, ...]:
    return found.debit(charge(epsilon, private=private))
