"""What changes between the plan of a run, its debit and its end slips past no budget."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ledger_entries import account
from small_tables import fill, ready

from dpforest_duckdb import BudgetError, DpforestError, UsageError
from dpforest_duckdb.audit.recipes import release_uncapped
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot
from dpforest_duckdb.errors import UnrecordedWarning
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.accounts import NoAccount
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.training.evaluate import EvaluationTerms, evaluate_table
from dpforest_duckdb.training.opening import find_rows
from dpforest_duckdb.training.train import train_many


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


def test_a_debit_whose_anchor_is_not_committed_says_that_it_stays(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger may be on another disk than the database."""
    stored = DuckDBEngine.stored_comment

    @contextlib.contextmanager
    def full(engine: DuckDBEngine, table: Any) -> Iterator[Any]:
        with stored(engine, table) as found:
            yield found
            raise DpforestError("DuckDB could not write its files: check the disk.")

    run = ready(con)
    with monkeypatch.context() as patched:
        patched.setattr(DuckDBEngine, "stored_comment", full)
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
        "evaluate": lambda: evaluate_table(
            engine, forest, engine.table("t"), account(con), EvaluationTerms(epsilon=1)
        ),
    }[with_rows]
    with pytest.raises(DpforestError, match="replaced or changed after the debit"):
        read()
    assert not seen


def test_a_release_without_a_debit_looks_at_the_table_that_it_reads(
    con: duckdb.DuckDBPyConnection,
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


def test_no_other_account_stands_in_for_that_of_a_table(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Else a table would be trained on, or evaluated, past its cap."""
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    fill(con, "u")
    book = Ledger(tmp_path / "book")
    others = (NoAccount(), DatasetAccount(book, (), "other"), account(con, "u"))
    forest, engine = ready(con).execute(), DuckDBEngine(con)
    domain = Domain((Attribute("a", "categorical", ("x", "y")),), "k", ("false", "true"))
    for other in others:
        for rows in ("t", con.table("t"), con.sql("SELECT a, k FROM t")):
            with pytest.raises(UsageError, match="account is for DataFrames"):
                ready(con, rows, epsilon=50, account=other, domain=domain)
        for epsilon in (None, 50):
            with pytest.raises(UsageError, match="a table has a budget of its own"):
                evaluate_table(
                    engine, forest, engine.table("t"), other, EvaluationTerms(epsilon=epsilon)
                )
    assert account(con).budget().spent_epsilon == NANO
    assert account(con, "u").budget().spent_epsilon == 0
    assert not book.path.exists()


def test_exact_figures_without_an_account_look_for_the_note_of_a_budget(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A table in memory may get a budget just before its rows are read."""
    with duckdb.connect() as memory:
        fill(memory, "t")
        forest = ready(memory, ledger=tmp_path / "first").execute()
        memory.execute("COMMENT ON TABLE t IS NULL")
        engine = DuckDBEngine(memory)
        table, snapshot = engine.table("t"), DuckDBEngine.snapshot
        assert evaluate_table(engine, forest, table, NoAccount()).rows

        def after_a_cap(*given: Any) -> Any:
            account(memory, ledger=tmp_path / "second").set_cap(NANO, 0, ROW, raise_cap=False)
            return snapshot(*given)

        monkeypatch.setattr(DuckDBEngine, "snapshot", after_a_cap)
        with pytest.raises(DpforestError, match="has no place for its budget"):
            evaluate_table(engine, forest, table, NoAccount())


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
        evaluate_table(found.engine, forest, found.table, budget)


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
        evaluate_table(engine, forest, engine.table("t"), account(con), EvaluationTerms(epsilon=1))


def test_a_debit_whose_end_is_not_recorded_gets_a_warning(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise DpforestError("The disk is full.")

    monkeypatch.setattr(Account, "close_run", full)
    with pytest.warns(UnrecordedWarning, match="could not record which model"):
        assert ready(con).execute().private
    with warnings.catch_warnings(action="error"):
        assert ready(con).execute().private, "what is paid for is returned"
