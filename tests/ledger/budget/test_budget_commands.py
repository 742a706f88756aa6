"""Commands move, retire and explain budgets, and no name or damaged model misleads them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from shell import dpforest
from small_tables import fill, ready

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.entries import Holder
from dpforest_duckdb.ledger.vanished import vanished_named


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


def test_no_budget_moves_to_a_table_without_the_column_that_its_cap_protects(home: Path) -> None:
    db = home / "a.duckdb"
    cap = ("budget", "set", "--db", db, "--table", "t", "--epsilon", 2, "--privacy-unit", "WHO")
    assert dpforest(*cap).code == 0
    with duckdb.connect(str(db)) as con:
        con.execute("DROP TABLE t")
        con.execute("CREATE TABLE cities (a ENUM ('x', 'y'), k BOOLEAN)")
        fill(con, "u")
    words = ("train", "--db", db, "--table", "cities", "--target", "k", "--epsilon", 1)
    said = dpforest(*words, "--recipe", "greedy-tree")
    assert 'rename its column back to "who" and run dpforest budget move' in said.err
    move = ("budget", "move", "--db", db, "--table", "t", "--to")
    said = dpforest(*move, "cities")
    assert said.code == 1
    assert 'Table "cities" has no column "who", which the cap of "t" protects' in said.err
    assert dpforest(*move, "u").code == 0


@pytest.mark.parametrize("table", ["t", '"T"', "main.t", "a.t", "a.main.t", "nosuch"])
def test_there_is_nothing_to_move_or_retire_while_no_capped_table_is_missing(
    home: Path, table: str
) -> None:
    """A table may be there, or never have been."""
    db = home / "a.duckdb"
    with duckdb.connect(str(db)) as con:
        fill(con, "u")
    assert dpforest("budget", "set", "--db", db, "--table", "t", "--epsilon", 1).code == 0
    plain = table.replace('"', "")
    there = f'Table "{plain}" is still there and no'
    never = f'The database has no table "{table}", and no'
    for words in (("retire",), ("move", "--to", "u")):
        said = dpforest("budget", *words, "--db", db, "--table", table)
        start = never if table == "nosuch" else there
        assert said.err.endswith(
            f"Error: {start} table with a cap is missing, so there is nothing to move or retire.\n"
        )
        assert said.code == 1


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


def test_the_only_table_is_retired_after_it_was_dropped(home: Path) -> None:
    db = home / "a.duckdb"
    assert dpforest("budget", "set", "--db", db, "--table", "t", "--epsilon", 1).code == 0
    with duckdb.connect(str(db)) as con:
        con.execute("DROP TABLE t")
    retire = ("budget", "retire", "--db", db, "--table")
    said = dpforest(*retire, "t", "--ledger", home / "none")
    assert "there is nothing to move or retire" in said.err
    assert not (home / "none").exists(), "a refusal makes no ledger"
    assert 'No capped table "u" has vanished' in dpforest(*retire, "u").err
    assert dpforest(*retire, "t").code == 0
    assert "missing" not in dpforest("budget", "--db", db).out


def test_a_list_of_budgets_names_those_that_are_not_known(home: Path) -> None:
    """A table that is gone, and one whose budget is in another ledger, hide none of the others."""
    db = home / "a.duckdb"
    with duckdb.connect(str(db)) as con:
        for table in ("u", "v", "w", "x"):
            fill(con, table)
    for table, ledger in (("t", ()), ("u", ()), ("v", ()), ("w", ("--ledger", home / "w"))):
        cap = ("budget", "set", "--db", db, "--epsilon", 1, "--table", table, *ledger)
        assert dpforest(*cap).code == 0
    with duckdb.connect(str(db)) as con:
        con.execute("DROP TABLE t")
    said = dpforest("budget", "--db", db, "--json")
    found = [(one["table"], one["missing"]) for one in said.facts["tables"]]
    assert found == [("u", False), ("v", False), ("t", True)]
    notes = said.err.splitlines()
    assert sum("does not hold the last debit" in note for note in notes) == 1
    assert sum('Table "t", which has a cap, is gone' in note for note in notes) == 1
    for table in ("u", "v"):
        with duckdb.connect(str(db)) as con:
            con.execute(f"DROP TABLE {table}")
    said = dpforest("budget", "--db", db)
    assert said.code == 0
    listed = [line.split()[:3] for line in said.out.splitlines() if "missing" in line]
    assert listed == [[name, "(missing)", "1"] for name in "tuv"]
    moved = dpforest("budget", "move", "--db", db, "--table", "t", "--to", "nosuch")
    assert 'There is no table "nosuch" in the database: check --to.' in moved.err


def test_the_only_table_is_listed_as_missing_after_it_was_dropped(home: Path) -> None:
    db = home / "a.duckdb"
    assert dpforest("budget", "set", "--db", db, "--epsilon", 1, "--table", "t").code == 0
    with duckdb.connect(str(db)) as con:
        con.execute("DROP TABLE t")
    found = dpforest("budget", "--db", db, "--json").facts["tables"]
    assert [(one["table"], one["missing"], one["cap"]) for one in found] == [("t", True, 1)]
    assert "t (missing)" in dpforest("budget", "--db", db).out
    elsewhere = dpforest("budget", "--db", db, "--ledger", home / "other")
    assert elsewhere.out.startswith("The database has no table."), "it knows of no cap"


@pytest.mark.parametrize("name", ['"a.b"', "a.b"])
def test_a_table_is_retired_by_its_name_with_quotes_or_without(home: Path, name: str) -> None:
    db = home / "a.duckdb"
    with duckdb.connect(str(db)) as con:
        fill(con, '"a.b"')
    budget = ("budget", "set", "--db", db, "--epsilon", 1, "--table", '"a.b"')
    assert dpforest(*budget).code == 0
    with duckdb.connect(str(db)) as con:
        con.execute('DROP TABLE "a.b"')
    said = dpforest("budget", "retire", "--db", db, "--table", name)
    assert 'Table "a.b" is retired' in said.text


def test_the_table_that_is_retired_is_the_one_that_was_named(home: Path) -> None:
    """Another one would be free of its cap. The name may be as messages show it, or as in SQL."""
    a, quoted = Holder("1", "ab", "/d::main.ab"), Holder("2", 'a"b', '/d::main."a""b"')
    schema, dotted = Holder("3", "s.t", "/d::s.t"), Holder("4", "s.t", '/d::main."s.t"')
    lost = [a, quoted, schema, dotted]
    for name, holder in (
        ("ab", a), ('"AB"', a), ('a"b', quoted), ('"a""b"', quoted),
        ("s.t", schema), ('"S"."T"', schema), ('"s.t"', dotted), ("main.ab", None), ("b", None),
    ):  # fmt: skip
        for order in (lost, lost[::-1]):
            if holder is None:
                with pytest.raises(DpforestError, match="has vanished from the database: name one"):
                    vanished_named(order, name, ())
            else:
                assert vanished_named(order, name, ()) is holder
    with pytest.raises(DpforestError, match="has vanished"):
        vanished_named([schema, Holder("5", "s.t", "/e::s.t")], "s.t", ())


def test_the_budgets_of_all_tables_are_listed(home: Path) -> None:
    db = home / "a.duckdb"
    with duckdb.connect(str(db)) as con:
        fill(con, "u")
        fill(con, "never_used")
    dpforest("budget", "set", "--db", db, "--table", "t", "--epsilon", 2)
    said = dpforest("train", "--db", db, "--table", "u", "--target", "k", "--epsilon", 1)
    assert said.code == 0
    shown = dpforest("budget", "--db", db, "--json").facts["tables"]
    assert [(each["table"], each["cap"], each["spent"]) for each in shown] == [
        ("t", 2, 0),
        ("u", None, 1),
    ]
    lines = [line.split() for line in dpforest("budget", "--db", db).out.splitlines()]
    assert ["t", "2", "0", "2", "0", "0"] in lines
    assert ["u", "none", "1", "no", "limit", "0", "1"] in lines


def test_a_dry_run_that_would_be_refused_fails_and_says_what_to_type(home: Path) -> None:
    db = home / "a.duckdb"
    dpforest("budget", "set", "--db", db, "--table", "t", "--epsilon", 2)
    words = ("train", "--db", db, "--table", "t", "--target", "k", "--dry-run")
    said = dpforest(*words, "--epsilon", 1, "--privacy-unit", "who", "--rows-per-unit", 3)
    assert said.code == 1
    assert said.out == "", "no plan is shown"
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
    assert "pass --privacy-unit who --rows-per-unit 3." in said.err


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
