"""A table that is renamed, dropped, retired or hidden, or lost its comment, keeps its budget."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from ledger_entries import account, spend
from small_tables import fill, ready

from dpforest_duckdb import (
    BudgetError,
    DpforestError,
    UsageError,
    budget,
    move_budget,
    retire_budget,
    set_budget,
)
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW


def test_a_capped_table_that_lost_its_comment_and_name_is_not_a_new_one(
    con: duckdb.DuckDBPyConnection,
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    spend(account(con))
    con.execute("COMMENT ON TABLE t IS NULL")
    con.execute("ALTER TABLE t RENAME TO fresh")
    for run in (lambda: spend(account(con, "fresh")), lambda: ready(con, "fresh").execute()):
        with pytest.raises(BudgetError, match=r"move_budget\(con, 't', 'fresh'\) if"):
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
    retire_budget(con, "t")
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
    with pytest.raises(BudgetError, match=r"retire_budget\(con, 't'\) if"):
        spend(account(con, "other"))
    retire_budget(con, "t")
    spend(account(con, "other"))
    fill(con, "t")
    assert account(con).budget().spent_epsilon == NANO, "retired is not forgiven"


def test_python_moves_and_retires_budgets_as_the_command_line_does(
    con: duckdb.DuckDBPyConnection,
) -> None:
    set_budget(con, "t", epsilon=2)
    con.execute("COMMENT ON TABLE t IS NULL; ALTER TABLE t RENAME TO u")
    moved = move_budget(con, "t", "u")
    assert moved == budget(con, "u")
    assert moved.facts()["cap"] == 2
    con.execute("DROP TABLE u")
    fill(con, "v")
    with pytest.raises(BudgetError, match=r"retire_budget\(con, 'u'\) if"):
        budget(con, "v")
    retire_budget(con, "u")
    assert budget(con, "v").facts()["cap"] is None


def test_python_refuses_what_cannot_be_moved_or_retired(
    con: duckdb.DuckDBPyConnection, home: Path
) -> None:
    set_budget(con, "t", epsilon=2)
    for refused in (lambda: move_budget(con, "t", "t"), lambda: retire_budget(con, "t")):
        with pytest.raises(DpforestError, match=r"so there is nothing to move or retire|already"):
            refused()
    with pytest.raises(DpforestError, match="check to"):
        move_budget(con, "t", "nosuch")
    with pytest.raises(DpforestError, match="name the right one with ledger"):
        retire_budget(con, "t", ledger=home / "other.ledger")
    assert not (home / "other.ledger").exists()
    with pytest.raises(UsageError, match="table must be text"):
        retire_budget(con, None)  # type: ignore[arg-type]


def test_a_table_with_a_budget_takes_over_no_other(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, "own")
    spend(account(con, "own"))
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    con.execute("DROP TABLE t")
    with pytest.raises(DpforestError, match="has a budget already"):
        account(con, "own").move_from("t")
    spend(account(con, "own"))


def test_dots_in_names_do_not_make_two_tables_one(con: duckdb.DuckDBPyConnection) -> None:
    """Else each would pay for the other, and hide that the other has vanished."""
    con.execute('CREATE SCHEMA "x.y"; CREATE SCHEMA x')
    fill(con, '"x.y".c')
    fill(con, 'x."y.c"')
    spend(account(con, '"x.y".c'))
    assert account(con, 'x."y.c"').budget().spent_epsilon == 0
    assert account(con, '"x.y".c').budget().spent_epsilon == NANO
