"""Debits that race: threads of one writer, read-only processes, attached databases."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
from ledger_entries import account
from steps import charge

from dpforest_duckdb.errors import BudgetError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.privacy.unit import ROW

THREADS = 4
READER = """
import sys, duckdb
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.entries import Charge
from dpforest_duckdb.privacy.unit import ROW
engine = DuckDBEngine(duckdb.connect(sys.argv[1], read_only=True))
account = Account.of(engine, engine.table("t"))
for _ in range(int(sys.argv[2])):
    account.debit(Charge(1, 0, ROW, "", "", True, ()))
"""


def made(path: Path) -> Path:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t (x INTEGER)")
    return path


def granted_of(found: Account, times: int) -> int:
    """How many of so many debits are granted."""
    granted = 0
    for _ in range(times):
        try:
            found.debit(charge(1))
            granted += 1
        except BudgetError as error:
            if "of the cap" not in str(error):  # nothing but the cap refuses
                raise
    return granted


def race(accounts: list[Account], times: int) -> list[int]:
    """What each account was granted, all of them debiting at once."""
    granted = [0] * len(accounts)

    def work(number: int) -> None:
        granted[number] = granted_of(accounts[number], times)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(accounts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return granted


def threads_of_one_writer(home: Path, times: int) -> None:
    """All accounts are opened while the table is fresh; the cap is set after that."""
    home.mkdir()
    with duckdb.connect(str(made(home / "a.duckdb"))) as con:
        accounts = [account(con.cursor(), "t") for _ in range(THREADS)]
        cap = THREADS * times // 2
        account(con, "t").set_cap(cap, 0, ROW, raise_cap=False)
        assert sum(race(accounts, times)) == cap
        found = account(con, "t").budget()
        assert found.spent_epsilon == cap
        assert len(found.entries) == cap


def attached_databases(home: Path, times: int) -> None:
    home.mkdir()
    with duckdb.connect() as con:
        for name in ("one", "two"):
            con.execute(f"ATTACH '{made(home / name)}' AS {name}")
        book = home / "book"
        account(con, "one.t", ledger=book).set_cap(times, 0, ROW, raise_cap=False)
        tables = ["one.t", "two.t"] * (THREADS // 2)
        granted = race([account(con.cursor(), table, ledger=book) for table in tables], times)
        assert sum(granted[::2]) == times, "capped at what one of two threads asks for"
        assert sum(granted[1::2]) == times * (THREADS // 2)
        for table, expected in (("one.t", granted[::2]), ("two.t", granted[1::2])):
            assert account(con, table, ledger=book).budget().spent_epsilon == sum(expected)


def read_only_processes(home: Path, times: int) -> None:
    home.mkdir()
    database = made(home / "a.duckdb")
    command = [sys.executable, "-c", READER, str(database), str(times)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(timeout=600) for process in processes] == [0, 0, 0]
    with duckdb.connect(str(database)) as con:
        assert account(con, "t").budget().spent_epsilon == 3 * times


@pytest.mark.parametrize("kind", [threads_of_one_writer, attached_databases, read_only_processes])
def test_racing_debits_overspend_nothing_and_lose_nothing(kind: object, tmp_path: Path) -> None:
    kind(tmp_path / "home", 12)  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [threads_of_one_writer, attached_databases, read_only_processes])
def test_ten_thousand_racing_debits(kind: object, tmp_path: Path) -> None:
    """In rounds, as each debit checks the whole chain before it."""
    for number in range(10):
        kind(tmp_path / str(number), 100)  # type: ignore[operator]
