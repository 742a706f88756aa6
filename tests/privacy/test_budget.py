"""The budget cannot be slipped past: prepared runs, races, other databases, lost comments."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shell import dpforest
from steps import charge

from dpforest_duckdb import BudgetError, DpforestError, UsageError, prepare
from dpforest_duckdb.audit.recipes import release_uncapped
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.engine.snapshot import DuckDBSnapshot
from dpforest_duckdb.errors import UnrecordedWarning
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount, NoAccount
from dpforest_duckdb.model.evaluate import evaluate
from dpforest_duckdb.privacy.amounts import NANO, atto_delta
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.training.budget import set_cap
from dpforest_duckdb.training.opening import find_rows
from dpforest_duckdb.training.train import train_many

ROW = PrivacyUnit("row")
DDL = "CREATE TABLE {} (a ENUM ('x', 'y'), k BOOLEAN, who INTEGER)"


def fill(con: duckdb.DuckDBPyConnection, table: str = "t", *, swapped: bool = False) -> None:
    con.execute(DDL.format(table))
    label = "i % 2 = 1" if swapped else "i % 2 = 0"
    con.execute(
        f"INSERT INTO {table} SELECT ['x', 'y'][i % 2 + 1], {label}, i // 3 FROM range(400) r(i)"
    )


def account(con: duckdb.DuckDBPyConnection, table: str = "t", **options: Any) -> Account:
    engine = DuckDBEngine(con)
    return Account.of(engine, engine.table(table), **options)


def ready(con: duckdb.DuckDBPyConnection, table: str = "t", **options: Any) -> Any:
    return prepare(con, table, **{"target": "k", "epsilon": 1, "recipe": "greedy-tree", **options})


def spend(found: Account, epsilon: int = NANO) -> tuple[int, ...]:
    return found.debit(charge(epsilon))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        fill(con)
    return tmp_path


@pytest.fixture
def con(home: Path) -> Any:
    with duckdb.connect(str(home / "a.duckdb")) as connection:
        yield connection


def test_runs_prepared_on_a_fresh_table_share_its_budget(con: duckdb.DuckDBPyConnection) -> None:
    runs = [ready(con, epsilon=5), ready(con, epsilon=1)]
    for run in runs:
        run.execute()
    assert account(con).budget().spent_epsilon == 6 * NANO


def test_a_cap_set_after_a_run_was_prepared_binds_it(con: duckdb.DuckDBPyConnection) -> None:
    run = ready(con, epsilon=100)
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="only 1 of the cap"):
        run.execute()
    cap = account(con).budget().cap
    assert cap is not None
    assert cap.epsilon == NANO
    assert '"cap": [' in DuckDBEngine(con).table("t").comment


def test_a_comment_written_after_a_run_was_prepared_survives(
    con: duckdb.DuckDBPyConnection,
) -> None:
    run = ready(con)
    con.execute("COMMENT ON TABLE t IS 'kept by the ward'")
    run.execute()
    assert DuckDBEngine(con).table("t").comment.startswith("kept by the ward\ndpforest-budget: ")


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
        with pytest.raises(BudgetError, match="open the database for writing"):
            ready(con).execute()
        assert account(con).budget().spent_epsilon == 0


def test_a_capped_table_that_lost_its_comment_and_name_is_not_a_new_one(
    con: duckdb.DuckDBPyConnection,
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    spend(account(con))
    con.execute("COMMENT ON TABLE t IS NULL")
    con.execute("ALTER TABLE t RENAME TO fresh")
    for run in (lambda: spend(account(con, "fresh")), lambda: ready(con, "fresh").execute()):
        with pytest.raises(BudgetError, match="budget move --table t --to fresh"):
            run()
    with pytest.raises(DpforestError, match='No capped table "x" has vanished'):
        account(con, "fresh").move_from("x")
    assert account(con, "fresh").move_from("t").spent_epsilon == NANO
    with pytest.raises(BudgetError, match="only 0 of the cap"):
        ready(con, "fresh").execute()


HIDING = (
    "CREATE MACRO duckdb_tables() AS TABLE SELECT 'a' AS database_name, 'main' AS schema_name, "
    "unnest(['t', 'own', 'u']) AS table_name, false AS temporary, false AS internal, "
    "NULL AS comment",
    "CREATE MACRO duckdb_databases() AS TABLE SELECT 'a' AS database_name, "
    "'elsewhere' AS path, false AS readonly, false AS encrypted",
)


@pytest.mark.parametrize("macro", HIDING)
def test_a_macro_over_the_catalogue_hides_no_cap(
    con: duckdb.DuckDBPyConnection, home: Path, macro: str
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    con.execute("COMMENT ON TABLE t IS NULL")
    if "duckdb_tables" in macro:
        con.execute("ALTER TABLE t RENAME TO u")
    con.execute(macro)
    with pytest.raises(BudgetError, match=r"is gone|of the cap of 1 is left"):
        spend(account(con, "u" if "duckdb_tables" in macro else "t"), 5 * NANO)
    assert [path.name for path in home.glob("*.ledger")] == ["a.duckdb.ledger"]


@pytest.mark.parametrize("renamed", [False, True])
def test_the_comment_of_another_table_takes_no_cap_away(
    con: duckdb.DuckDBPyConnection, renamed: bool
) -> None:
    fill(con, "own")
    spend(account(con, "own"))
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    other = DuckDBEngine(con).table("own").comment.replace("'", "''")
    con.execute(f"COMMENT ON TABLE t IS '{other}'")
    if renamed:
        con.execute("ALTER TABLE t RENAME TO u")
    with pytest.raises(BudgetError, match="is gone" if renamed else "budget of another table"):
        spend(account(con, "u" if renamed else "t"), 5 * NANO)
    spend(account(con, "own"))


@pytest.mark.parametrize("head", ["", "the last"])
def test_an_anchor_with_an_invented_id_is_refused(
    con: duckdb.DuckDBPyConnection, home: Path, head: str
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    last = Ledger(home / "a.duckdb.ledger").read().head if head else ""
    con.execute(
        f"""COMMENT ON TABLE t IS 'dpforest-budget: {{"dataset": "new", "head": "{last}"}}'"""
    )
    with pytest.raises(DpforestError, match="does not hold the last debit"):
        spend(account(con), 5 * NANO)


def test_a_retired_table_that_is_used_once_more_counts_as_gone_when_it_vanishes(
    con: duckdb.DuckDBPyConnection,
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    fill(con, "other")
    con.execute("DROP TABLE t")
    account(con, "other").retire("t")
    fill(con)
    spend(account(con))
    con.execute("COMMENT ON TABLE t IS NULL")
    con.execute("ALTER TABLE t RENAME TO fresh")
    with pytest.raises(BudgetError, match="is gone"):
        spend(account(con, "fresh"))


def test_a_dropped_table_holds_up_new_ones_until_it_is_retired(
    con: duckdb.DuckDBPyConnection,
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    spend(account(con))
    con.execute("DROP TABLE t")
    fill(con, "other")
    with pytest.raises(BudgetError, match="budget retire --table t"):
        spend(account(con, "other"))
    account(con, "other").retire("t")
    spend(account(con, "other"))
    fill(con, "t")
    assert account(con).budget().spent_epsilon == NANO, "retired is not forgiven"


def test_a_table_with_a_budget_takes_over_no_other(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, "own")
    spend(account(con, "own"))
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    con.execute("DROP TABLE t")
    with pytest.raises(DpforestError, match="has a budget of its own"):
        account(con, "own").move_from("t")
    spend(account(con, "own"))


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
        spend(account(con, ledger=home / "a.duckdb.ledger"))


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
        spend(account(con, ledger=book))


def test_a_debit_whose_anchor_is_not_committed_says_that_it_stays(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger may be on another disk than the database."""
    note = DuckDBEngine.budget_note

    @contextlib.contextmanager
    def full(engine: DuckDBEngine, table: Any) -> Iterator[Any]:
        with note(engine, table) as found:
            yield found
            raise DpforestError("DuckDB could not write its files: check the disk.")

    run = ready(con)
    with monkeypatch.context() as patched:
        patched.setattr(DuckDBEngine, "budget_note", full)
        with pytest.raises(DpforestError, match=r"check the disk\. The debit stays"):
            run.execute()
        with pytest.raises(DpforestError, match=r"check the disk\.$"):
            account(con).set_cap(9 * NANO, 0, ROW, raise_cap=False)
    assert account(con).budget().spent_epsilon == NANO


def test_an_open_transaction_of_the_user_is_refused_before_the_debit(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """A run does not see what is not committed, and the user's change would block the comment."""
    run = ready(con)
    con.execute("BEGIN")
    con.execute("COMMENT ON TABLE t IS 'mine'")
    for attempt in (run.execute, lambda: ready(con), lambda: list(train_many([run]))):
        with pytest.raises(DpforestError, match="COMMIT or ROLLBACK first"):
            attempt()
    con.execute("COMMIT")
    assert account(con).budget().spent_epsilon == 0
    run.execute()
    assert DuckDBEngine(con).table("t").comment.startswith("mine")


def test_a_change_of_the_table_by_another_connection_is_met_before_the_debit(
    con: duckdb.DuckDBPyConnection,
) -> None:
    other = con.cursor()
    other.execute("BEGIN")
    other.execute("COMMENT ON TABLE t IS 'theirs'")
    run = ready(con)
    with pytest.raises(BudgetError, match="another transaction is changing the table"):
        run.execute()
    assert account(con).budget().spent_epsilon == 0
    other.execute("ROLLBACK")
    run.execute()
    assert account(con).budget().spent_epsilon == NANO


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE t ADD COLUMN more INTEGER", "have changed"),
        ("ALTER TABLE t DROP COLUMN a", "have changed"),
        ("DROP TABLE t", "no longer in the database"),
        ("ALTER TABLE t RENAME TO u", "no longer in the database"),
    ],
)
def test_a_table_changed_since_the_plan_is_refused_before_the_debit(
    con: duckdb.DuckDBPyConnection, change: str, said: str
) -> None:
    run = ready(con)
    con.execute(change)
    with pytest.raises(DpforestError, match=said):
        run.execute()
    assert Ledger(run.account.ledger.path).read().entries == []


SWAP = "BEGIN; ALTER TABLE t RENAME TO old; ALTER TABLE u RENAME TO t; COMMIT"


@pytest.mark.parametrize("change", [SWAP, "ALTER TABLE t ADD COLUMN more INTEGER"])
@pytest.mark.parametrize("with_rows", ["train", "evaluate"])
def test_rows_of_another_table_than_was_debited_are_not_read(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, change: str, with_rows: str
) -> None:
    """Another connection gives the name to a table with a cap, between debit and first reading."""
    fill(con, "u", swapped=True)
    account(con, "u").set_cap(NANO // 10, 0, ROW, raise_cap=False)
    forest, run, seen = ready(con, epsilon=1000).execute(), ready(con), []
    debit = Account.debit

    def then_changed(self: Account, *given: Any, **named: Any) -> tuple[int, ...]:
        found = debit(self, *given, **named)
        con.cursor().execute(change)
        return found

    monkeypatch.setattr(Account, "debit", then_changed)
    monkeypatch.setattr(DuckDBSnapshot, "encode", lambda *_, **__: seen.append("encoded"))
    monkeypatch.setattr(DuckDBSnapshot, "count_outcome_grid", lambda *_, **__: seen.append("read"))
    engine = DuckDBEngine(con)
    read = {
        "train": run.execute,
        "evaluate": lambda: evaluate(engine, forest, engine.table("t"), epsilon=1),
    }[with_rows]
    with pytest.raises(DpforestError, match="replaced or changed after the debit"):
        read()
    assert not seen


def test_a_release_without_a_debit_looks_at_the_table_that_it_reads(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(con, "u")
    account(con, "u").set_cap(NANO, 0, ROW, raise_cap=False)
    run = ready(con)
    con.execute(SWAP)
    with pytest.raises(DpforestError):
        release_uncapped(run)


def test_a_model_whose_name_was_taken_meanwhile_is_kept_under_another(
    con: duckdb.DuckDBPyConnection,
) -> None:
    runs = [ready(con, name="risk") for _ in range(3)]
    names = [run.execute().name for run in runs]
    assert names == ["risk", "risk 2", "risk 3"]
    assert DuckDBEngine(con).models.names() == names


def test_a_release_without_a_debit_is_refused_on_a_capped_table(
    con: duckdb.DuckDBPyConnection,
) -> None:
    run = ready(con)
    assert release_uncapped(run).private
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="spend past it"):
        release_uncapped(run)


def test_the_unit_of_a_cap_can_change_while_nothing_is_spent(
    con: duckdb.DuckDBPyConnection,
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="budget set --table t --privacy-unit who"):
        ready(con, privacy_unit="who", rows_per_unit=3).execute()
    account(con).set_cap(NANO, 0, PrivacyUnit("who", 3), raise_cap=False)
    with pytest.raises(BudgetError, match=r"raise"):
        account(con).set_cap(2 * NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="each row may be less"):
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    account(con).set_cap(NANO, 0, ROW, raise_cap=True)
    spend(account(con), 1)
    with pytest.raises(BudgetError, match="cannot be changed"):
        account(con).set_cap(NANO, 0, PrivacyUnit("who", 3), raise_cap=False)


def test_a_check_refuses_what_a_debit_would(con: duckdb.DuckDBPyConnection) -> None:
    found = account(con)
    found.check(found.ledger.read(), charge(NANO))
    found.set_cap(NANO, 0, ROW, raise_cap=False)
    for epsilon, unit, private in (
        (2 * NANO, ROW, True),
        (NANO, PrivacyUnit("who"), True),
        (NANO, ROW, False),
    ):
        with pytest.raises(BudgetError):
            found.check(found.ledger.read(), charge(epsilon, unit, private=private))
    assert len(found.ledger.read().entries) == 1


def test_the_command_line_moves_and_retires_budgets(home: Path) -> None:
    db = home / "a.duckdb"
    assert dpforest("budget", "set", "--db", db, "--table", "t", "--epsilon", 2).code == 0
    with duckdb.connect(str(db)) as con:
        con.execute("COMMENT ON TABLE t IS NULL")
        con.execute("ALTER TABLE t RENAME TO u")
        fill(con, "v")
    words = ("train", "--db", db, "--target", "k", "--epsilon", 1, "--recipe", "greedy-tree")
    for table in ("u", "v"):
        said = dpforest(*words, "--table", table)
        assert said.code == 1
        assert f"budget move --table t --to {table}" in said.err
    assert (
        "cap     ε = 2" in dpforest("budget", "move", "--db", db, "--table", "t", "--to", "u").out
    )
    assert dpforest(*words, "--table", "u").code == 0
    assert dpforest(*words, "--table", "v").code == 0
    with duckdb.connect(str(db)) as con:
        con.execute("DROP TABLE u")
        fill(con, "w")
    assert dpforest(*words, "--table", "w").code == 1
    assert dpforest("budget", "retire", "--db", db, "--table", "u").code == 0
    assert dpforest(*words, "--table", "w").code == 0


def test_a_table_is_retired_whatever_ledgers_other_tables_have(home: Path) -> None:
    db = home / "a.duckdb"
    with duckdb.connect(str(db)) as con:
        fill(con, "u")
    budget = ("budget", "set", "--db", db, "--epsilon", 1)
    retire = ("budget", "retire", "--db", db, "--table", "u", "--ledger")
    for table in ("t", "u"):
        assert dpforest(*budget, "--table", table, "--ledger", home / table).code == 0
    with duckdb.connect(str(db)) as con:
        con.execute("DROP TABLE u")
    said = dpforest(*retire, home / "u")
    assert "does not hold the last debit" in said.err, "no other table has that ledger"
    with duckdb.connect(str(db)) as con:
        fill(con, "v")
    assert dpforest(*retire, home / "u").code == 0


def test_a_dry_run_that_would_be_refused_fails_and_says_what_to_type(home: Path) -> None:
    db = home / "a.duckdb"
    dpforest("budget", "set", "--db", db, "--table", "t", "--epsilon", 2)
    words = ("train", "--db", db, "--table", "t", "--target", "k", "--dry-run")
    said = dpforest(*words, "--epsilon", 1, "--privacy-unit", "who", "--rows-per-unit", 3)
    assert said.code == 1
    assert "recipe    auto" in said.out, "the plan is shown all the same"
    typed = said.err.split("dpforest budget set ")[1].rstrip(".\n").split()
    assert dpforest("budget", "set", "--db", db, *typed).code == 0
    said = dpforest(*words, "--epsilon", 1, "--privacy-unit", "who", "--rows-per-unit", 3)
    assert said.code == 0
    said = dpforest(*words, "--epsilon", 3, "--privacy-unit", "who", "--rows-per-unit", 3)
    assert said.code == 1
    assert "only 2 of the cap" in said.err
    said = dpforest(*words, "--epsilon", 1)
    assert said.code == 0
    assert 'Privacy unit: each "who" (at most 3 rows used)' in said.err, "as the cap has it"
    said = dpforest(*words, "--epsilon", 1, "--privacy-unit", "row")
    assert said.code == 1
    assert "train with --privacy-unit who --rows-per-unit 3." in said.err


@pytest.mark.parametrize("epsilon", ["NaN", "1e9999", "-1", "one", "Infinity"])
def test_a_damaged_model_does_not_break_the_list(home: Path, epsilon: str) -> None:
    db = home / "a.duckdb"
    with duckdb.connect(str(db)) as con:
        ready(con, name="good").execute()
        con.execute(
            "INSERT INTO dpforest.models SELECT 'odd', replace(model, '\"epsilon\":\"1\"', "
            f'\'"epsilon":"{epsilon}"\') FROM dpforest.models'
        )
    said = dpforest("models", "list", "--db", db)
    assert said.code == 0
    assert "good" in said.out
    assert 'The model "odd"' in said.err
    listed = dpforest("models", "list", "--db", db, "--json")
    assert [model["model"] for model in listed.facts["models"]] == ["good", "odd"]


def test_no_name_steers_a_terminal(home: Path) -> None:
    """ESC, C1 and bidirectional controls, in a table's name, come out as question marks."""
    hostile = "t\x1b[2J\x9b31m\u202egnp"
    with duckdb.connect(str(home / "a.duckdb")) as con:
        con.execute(f'ALTER TABLE t RENAME TO "{hostile}"')
    db = home / "a.duckdb"
    for words in (
        ("budget", "set", "--table", hostile, "--epsilon", 2),
        ("budget", "show"),
        ("train", "--table", hostile, "--target", "k", "--epsilon", 1, "--name", "m"),
        ("score", "--table", hostile, "--model", "m", "--into", "scored"),
        ("models", "list"),
        ("models", "show", "m"),
    ):
        said = dpforest(words[0], *words[1:], "--db", db)
        assert said.code == 0, said.err
        for sign in "\x1b\x9b\u202e":
            assert sign not in said.out + said.err, words


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


def test_no_other_account_stands_in_for_that_of_a_table(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Else a table would be trained on, or evaluated, past its cap."""
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    book = Ledger(tmp_path / "book")
    others = (NoAccount(), DatasetAccount(book, (), "other"))
    forest, engine = ready(con).execute(), DuckDBEngine(con)
    domain = Domain((Attribute("a", "categorical", ("x", "y")),), "k", ("false", "true"))
    for other in others:
        for rows in ("t", con.table("t"), con.sql("SELECT a, k FROM t")):
            with pytest.raises(UsageError, match="account is for DataFrames"):
                ready(con, rows, epsilon=50, account=other, domain=domain)
        for epsilon in (None, 50):
            with pytest.raises(UsageError, match="a table has a budget of its own"):
                evaluate(engine, forest, engine.table("t"), epsilon=epsilon, account=other)
    assert account(con).budget().spent_epsilon == NANO
    assert not book.path.exists()


def test_dots_in_names_do_not_make_two_tables_one(con: duckdb.DuckDBPyConnection) -> None:
    """Else each would pay for the other, and hide that the other has vanished."""
    con.execute('CREATE SCHEMA "x.y"; CREATE SCHEMA x')
    fill(con, '"x.y".c')
    fill(con, 'x."y.c"')
    spend(account(con, '"x.y".c'))
    assert account(con, 'x."y.c"').budget().spent_epsilon == 0
    assert account(con, '"x.y".c').budget().spent_epsilon == NANO


def test_a_column_that_differs_in_the_case_of_an_accent_is_another_unit(
    con: duckdb.DuckDBPyConnection,
) -> None:
    con.execute(
        "CREATE TABLE two (\"É\" INTEGER, \"é\" INTEGER, a VARCHAR CHECK (a IN ('x', 'y')), "
        "k BOOLEAN)"
    )
    for name in ("É", "é"):
        unit = ready(con, "two", privacy_unit=name, columns=["a"]).unit
        assert unit == PrivacyUnit(name)
    assert ready(con, "two", privacy_unit="é", columns=["A"]).unit == PrivacyUnit("é")


def test_a_higher_cap_of_epsilon_keeps_that_of_delta(con: duckdb.DuckDBPyConnection) -> None:
    found = account(con)
    set_cap(found, 1, "1e-5", None, None, raise_cap=False)
    kept = set_cap(found, 2, None, None, None, raise_cap=True).cap
    assert kept is not None
    assert (kept.epsilon, kept.delta) == (2 * NANO, atto_delta("1e-5"))
    none = set_cap(found, None, 0, None, None, raise_cap=False).cap
    assert none is not None
    assert (none.epsilon, none.delta) == (2 * NANO, 0)


@pytest.mark.parametrize("options", [{}, {"rows_per_unit": 2}, {"privacy_unit": "WHO"}])
def test_a_run_protects_the_unit_of_the_cap(
    con: duckdb.DuckDBPyConnection, options: dict[str, Any]
) -> None:
    account(con).set_cap(NANO, 0, PrivacyUnit("who", 2), raise_cap=False)
    assert ready(con, **options).unit == PrivacyUnit("who", 2)
    assert ready(con, **options).execute().guarantee.rows_per_unit == 2


def test_a_column_of_a_cap_may_get_other_case(con: duckdb.DuckDBPyConnection) -> None:
    account(con).set_cap(9 * NANO, 0, PrivacyUnit("who", 2), raise_cap=False)
    ready(con).execute()
    con.execute("ALTER TABLE t RENAME who TO WHO")
    assert ready(con).execute().guarantee.unit == "WHO"
    assert ready(con, privacy_unit="who").unit == PrivacyUnit("WHO", 2)
    con.execute("ALTER TABLE t RENAME WHO TO other")
    with pytest.raises(DpforestError, match="which the cap protects"):
        ready(con)


def test_a_column_called_row_is_not_each_row(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("ALTER TABLE t RENAME who TO Row")
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    assert ready(con, privacy_unit="Row").unit == PrivacyUnit("Row")
    with pytest.raises(BudgetError, match="protects each row"):
        ready(con, privacy_unit="Row").execute()


def test_a_column_spelt_row_is_no_privacy_unit(con: duckdb.DuckDBPyConnection) -> None:
    """Its name would mean each row, and protect a person's many rows as one."""
    con.execute('ALTER TABLE t RENAME who TO "row"')
    for spelling in ("Row", "ROW"):
        with pytest.raises(UsageError, match='"row" cannot be the privacy unit'):
            ready(con, privacy_unit=spelling)
    assert ready(con, privacy_unit="row").unit == ROW
    named = {"attributes": (Attribute("a", "categorical", ("x", "y")),), "target": "k"}
    for unit, identifier in (("row", "row"), ("Row", "row"), ("row", "Row")):
        with pytest.raises(DpforestError, match=f'has an identifier "{identifier}"'):
            Domain(**named, classes=("false", "true"), privacy_unit=unit, identifiers=(identifier,))
    Domain(**named, classes=("false", "true"), privacy_unit="Row", identifiers=("Row",))


def test_identifiers_are_asked_about_under_a_cap_of_rows(con: duckdb.DuckDBPyConnection) -> None:
    domain = Domain(
        (Attribute("a", "categorical", ("x", "y")),), "k", ("false", "true"), identifiers=("who",)
    )
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(DpforestError, match="say whom to protect"):
        ready(con, domain=domain)
    account(con).set_cap(NANO, 0, PrivacyUnit("who", 2), raise_cap=False)
    assert ready(con, domain=domain).unit == PrivacyUnit("who", 2)


def test_a_query_of_a_table_that_was_capped_meanwhile_gives_nothing(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Neither a forest without a debit, nor exact figures."""
    domain = Domain((Attribute("a", "categorical", ("x", "y")),), "k", ("false", "true"))
    rows, book = con.sql("SELECT a, k FROM t"), tmp_path / "book"
    run = ready(con, rows, epsilon=50, domain=domain, ledger=book, dataset="q")
    forest = ready(con, rows, domain=domain, ledger=book, dataset="q").execute()
    found = find_rows(con, rows)
    budget = found.account(book, "q")
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="may read table"):
        release_uncapped(run)
    with pytest.raises(BudgetError, match="may read table"):
        evaluate(found.engine, forest, found.table, account=budget)


def test_a_failure_after_the_debit_says_that_the_debit_stays(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise DpforestError("No.")

    run, forest = ready(con), ready(con).execute()
    monkeypatch.setattr(DuckDBSnapshot, "encode", fails)
    monkeypatch.setattr(DuckDBSnapshot, "count_outcome_grid", fails)
    with pytest.raises(DpforestError, match=r"^No\. The debit stays"):
        run.execute()
    engine = DuckDBEngine(con)
    with pytest.raises(DpforestError, match=r"^No\. The debit stays"):
        evaluate(engine, forest, engine.table("t"), epsilon=1)


def test_a_debit_whose_end_is_not_recorded_gets_a_warning(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise DpforestError("The disk is full.")

    monkeypatch.setattr(Account, "close_run", full)
    with pytest.warns(UnrecordedWarning, match="could not record which model"):
        assert ready(con).execute().private
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ready(con).execute().private, "what is paid for is returned"
