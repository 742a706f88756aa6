"""Each database has budgets of its own, wherever it lies, and whichever ledger it uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ledger_entries import account, spend
from small_tables import fill, ready

from dpforest_duckdb import BudgetError, DpforestError
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.training.train import train_many

READER = """
import sys, duckdb
from dpforest_duckdb import prepare
con = duckdb.connect(sys.argv[1], read_only=True)
runs = [prepare(con, "t", target="k", epsilon=e, recipe="greedy-tree") for e in (1, 2)]
print("ready", flush=True)
sys.stdin.readline()
for run in runs:
    run.execute()
"""


@pytest.mark.more
def test_read_only_processes_add_up(home: Path) -> None:
    command = [sys.executable, "-c", READER, str(home / "a.duckdb")]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n", timeout=120)
        assert process.returncode == 0
    with duckdb.connect(str(home / "a.duckdb")) as con:
        assert account(con).budget().spent_epsilon == 6 * NANO


def test_each_database_has_its_own_budget_and_rows(home: Path) -> None:
    """Two tables of one name in two attached databases, one ledger for both."""
    for name, swapped in (("one", False), ("two", True)):
        with duckdb.connect(str(home / f"{name}.duckdb")) as con:
            fill(con, swapped=swapped)
    with duckdb.connect() as con:
        for name in ("one", "two"):
            con.execute(f"ATTACH '{home / name}.duckdb' AS {name}")
        book = home / "book"
        account(con, "two.t", ledger=book).set_cap(NANO, 0, ROW, raise_cap=False)
        first = ready(con, "one.t", ledger=book, epsilon=1)
        second = ready(con, "two.t", ledger=book, epsilon=5)
        with pytest.raises(DpforestError, match="different tables or ledgers"):
            list(train_many([first, second]))
        first.execute()
        with pytest.raises(BudgetError, match="only 1 of the cap"):
            second.execute()
        assert account(con, "two.t", ledger=book).budget().spent_epsilon == 0
        assert account(con, "one.t", ledger=book).budget().spent_epsilon == NANO


def test_databases_in_memory_are_distinguished(tmp_path: Path) -> None:
    with duckdb.connect() as con:
        for name in ("one", "two"):
            con.execute(f"ATTACH ':memory:' AS {name}")
            fill(con, f"{name}.t")
        spend(account(con, "one.t", ledger=tmp_path / "book"))
        assert account(con, "two.t", ledger=tmp_path / "book").budget().spent_epsilon == 0
        assert account(con, "one.t", ledger=tmp_path / "book").budget().spent_epsilon == NANO


def test_a_capped_table_is_not_debited_through_a_read_only_database(home: Path) -> None:
    with duckdb.connect(str(home / "a.duckdb")) as con:
        account(con).set_cap(9 * NANO, 0, ROW, raise_cap=False)
    with duckdb.connect(str(home / "a.duckdb"), read_only=True) as con:
        with pytest.raises(BudgetError, match="in Python connect without read_only"):
            ready(con).execute()
        assert account(con).budget().spent_epsilon == 0


def test_a_table_of_another_database_that_is_gone_counts_as_vanished(home: Path) -> None:
    book = home / "book"
    with duckdb.connect(str(home / "a.duckdb")) as con:
        account(con, ledger=book).set_cap(NANO, 0, ROW, raise_cap=False)
        con.execute("COMMENT ON TABLE t IS NULL")
    (home / "a.duckdb").rename(home / "b.duckdb")
    with duckdb.connect(str(home / "b.duckdb")) as con, pytest.raises(BudgetError, match="is gone"):
        spend(account(con, ledger=book))


@pytest.mark.parametrize(("file", "name"), [("b::c.duckdb", "s"), ("b.duckdb", "x::y")])
def test_colons_in_a_name_make_no_database_vanish(file: str, name: str, home: Path) -> None:
    book = home / "book"
    with duckdb.connect(str(home / file)) as con:
        fill(con)
        con.execute(f'ALTER TABLE t RENAME TO "{name}"')
        account(con, f'"{name}"', ledger=book).set_cap(NANO, 0, ROW, raise_cap=False)
    with duckdb.connect(str(home / "other.duckdb")) as con:
        fill(con)
        spend(account(con, ledger=book))
    (home / file).unlink()
    with duckdb.connect(str(home / "other.duckdb")) as con:
        fill(con, "new")
        with pytest.raises(BudgetError, match="is gone"):
            spend(account(con, "new", ledger=book))


def test_the_ledger_of_another_database_does_not_miss_its_tables(home: Path) -> None:
    """Those have no path in the ledger beside them."""
    with duckdb.connect(str(home / "a.duckdb")) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with duckdb.connect(str(home / "b.duckdb")) as con:
        fill(con)
        second = account(con, ledger=home / "a.duckdb.ledger")
        spend(second)
        assert second.budget().spent_epsilon == NANO


def test_paths_that_cannot_be_looked_at_do_not_stop_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of another user may hold the database; a name may be too long for a file."""
    book, name = home / "book", f"v::{'x' * 300}::b"
    with duckdb.connect(str(home / "b.duckdb")) as con:
        fill(con)
        con.execute(f'ALTER TABLE t RENAME TO "{name}"')
        account(con, f'"{name}"', ledger=book).set_cap(NANO, 0, ROW, raise_cap=False)
    with duckdb.connect(str(home / "other.duckdb")) as con:
        fill(con)
        (home / "b.duckdb").rename(home / "gone")
        with pytest.raises(BudgetError, match="is gone"):
            spend(account(con, ledger=book))
        found = os.stat

        def looked_at(path: Any, *args: Any, **options: Any) -> os.stat_result:
            if str(path).endswith("b.duckdb"):
                raise PermissionError("not for you")
            return found(path, *args, **options)

        monkeypatch.setattr(os, "stat", looked_at)
        other = account(con, ledger=book)
        spend(other)
        assert other.budget().spent_epsilon == NANO


def test_runs_of_two_databases_in_memory_never_share_rows(tmp_path: Path) -> None:
    """Both are called memory, and their tables alike; one ledger is named for both."""
    with duckdb.connect(":memory:") as one, duckdb.connect(":memory:") as two:
        for con, swapped in ((one, False), (two, True)):
            fill(con, swapped=swapped)
        runs = [ready(con, ledger=tmp_path / "book", epsilon=1000) for con in (one, two)]
        learnt = [
            forest.predict(one, "t").filter("a = 'x'").project("prediction").fetchall()
            for forest in train_many(runs)
        ]
    assert [set(found) for found in learnt] == [{(True,)}, {(False,)}]
