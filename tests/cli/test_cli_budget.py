"""The verb budget shows and caps what a table may cost; runs past the cap are refused."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from shell import dpforest, make, refused, state, train
from visits import DDL, filling

from dpforest_duckdb import set_budget
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Debit, Holder
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW


def test_a_seed_is_refused_on_a_capped_table(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    before = state(db)
    said = dpforest(*train(db, "--name", "again", "--seed", "5", "--not-private"))
    refused(said, "visits", "not private")
    assert state(db) == before


def test_a_run_past_the_cap_is_refused(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot

    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "1.25")
    before = state(db)
    monkeypatch.setattr(DuckDBSnapshot, "encode", lambda *a, **k: pytest.fail("rows were read"))
    said = dpforest(*train(db, "--name", "again"))
    refused(said, "ε = 1 but only 0.25", "cap of 1.25", '"visits"')
    assert state(db) == before


def test_rows_are_protected_only_with_a_word_about_persons(db: Path, tmp_path: Path) -> None:
    """Whoever caps or trains without a privacy unit, or with another one than the domain's."""
    said = dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    assert "protects single rows" in said.err
    again = dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "8")
    assert "protect persons" not in again.err, "said once"
    file = tmp_path / "visits.toml"
    content = dpforest("domain", "--db", db, "--table", "visits", "--target", "ill").out
    content = re.sub(r'name = "who"\n', 'name = "who"\nkind = "identifier"\n', content)
    file.write_text(f'privacy_unit = "who"\n{content}')
    said = dpforest(*train(db, "--name", "row", "--domain", file, "--privacy-unit", "row"))
    assert (
        'Note: The domain names "who" as the privacy unit; this run protects each row' in said.err
    )


def test_the_list_of_runs_says_whom_they_protect_unless_the_cap_does(db: Path) -> None:
    show = ("budget", "--db", db, "--table", "visits")
    assert "protects" in dpforest(*show).out
    dpforest(*train(db, "--name", "again", "--recipe", "dpdf"))
    numbers = [line.split()[0] for line in dpforest(*show).text.splitlines() if "done" in line]
    assert numbers == ["1", "2"], "runs are numbered, not entries of the ledger"
    dpforest("budget", "set", *show[1:], "--epsilon", "9", "--privacy-unit", "row")
    assert "protects" not in dpforest(*show).out


def test_budget_json_and_raising(db: Path) -> None:
    show = ("budget", "show", "--db", db, "--json")
    set_ = ("budget", "set", "--db", db, "--table", "visits", "--json", "--epsilon")
    facts = dpforest(*show, "--table", "visits").facts
    assert set(facts) == {
        *("table", "cap", "spent", "left", "delta_cap", "delta_spent"),
        *("privacy_unit", "rows_per_unit", "cap_limit", "entries"),
    }
    assert (facts["table"], facts["cap"], facts["spent"], facts["left"]) == (
        "visits",
        None,
        1,
        None,
    )
    (entry,) = facts["entries"]
    assert set(entry) == {
        *("time", "recipe", "model", "epsilon", "delta", "private", "state"),
        *("privacy_unit", "rows_per_unit"),
    }
    assert (entry["model"], entry["epsilon"], entry["state"]) == ("risk", 1, "done")
    assert dpforest(*set_, "3").facts["left"] == 2, "what was spent before counts"
    before = state(db)
    refused(dpforest(*set_, "4"), '"visits" has a cap of ε = 3', "--raise", "raise it to 4")
    refused(dpforest(*set_, "3", "--delta", "0.1"), "cap of δ = 0", "--raise")
    refused(dpforest(*set_, "3", "--privacy-unit", "who"), "protected each row", '"who"')
    assert state(db) == before
    assert dpforest(*set_, "4", "--raise").facts["cap"] == 4
    said = dpforest(*set_, "0.5")
    assert (said.facts["cap"], said.facts["left"]) == (0.5, 0)
    assert "every run is refused" in said.err
    shown = dpforest(*show).facts
    (listed,) = shown.pop("tables")
    assert shown == said.facts, "the one table with a budget needs no --table"
    assert listed == {**said.facts, "missing": False}
    day, hour = entry["time"].removesuffix(":00:00+00:00").split("T")
    assert f"{day} {hour}:00 UTC" in dpforest(*show[:-1]).out


def test_budget_says_which_caps_are_no_longer_possible(tmp_path: Path) -> None:
    db = tmp_path / "d.duckdb"
    make(db, DDL, filling())
    show = ("budget", "--db", db, "--table", "visits")
    assert "cap     none\n" in dpforest(*show).text
    assert dpforest(*show, "--json").facts["cap_limit"] is None
    person = ("--privacy-unit", "who", "--rows-per-unit")
    seeded = ("--privacy-unit", "row", "--seed", "1", "--not-private")
    only = "a cap can protect only"
    for words, limit in (
        ((*person, "2"), f'{only} each "who": run 1 protected it'),
        ((*person, "3"), f'{only} each "who": run 1 protected it'),
        (
            ("--privacy-unit", "row"),
            'no cap is possible: run 1 protected each "who" (at most 2 rows used), but run 3 '
            "protected each row",
        ),
    ):
        assert dpforest(*train(db, *words, "--replace")).code == 0
        assert f"cap     none ({limit})\n" in dpforest(*show).text
        assert dpforest(*show, "--json").facts["cap_limit"] == limit
    make(db, DDL.replace("TABLE visits", "TABLE rows"), filling().replace("visits", "rows"))
    rows = ("--table", "rows")
    for words, limit in (
        (("--privacy-unit", "row"), f"{only} single rows: run 1 protected each row"),
        (seeded, "no cap is possible: run 2 was not private"),
    ):
        assert dpforest(*train(db, *words, "--replace"), *rows).code == 0
        assert f"cap     none ({limit})\n" in dpforest("budget", "--db", db, *rows).text
    cap = ("budget", "set", "--db", db, "--epsilon", "9")
    refused(dpforest(*cap, *rows), "run 2", "was not private")


def test_budget_names_the_options_that_are_missing(db: Path) -> None:
    before = state(db)
    shared = ("--db", db)
    refused(dpforest("budget", "set", *shared, "--epsilon", "1"), "--table", code=2)
    refused(dpforest("budget", "set", *shared, "--table", "visits"), "--epsilon", code=2)
    for idle in (
        *(("--epsilon", "1"), ("--delta", "0"), ("--privacy-unit", "row")),
        *(("--rows-per-unit", "1"), ("--raise",)),
    ):
        refused(dpforest("budget", "show", *shared, *idle), idle[0], "budget set", code=2)
    assert state(db) == before


def test_budget_of_several_tables_lists_them(tmp_path: Path) -> None:
    database = tmp_path / "d.duckdb"
    make(database, "CREATE SCHEMA s", "CREATE TABLE one (a INT)", "CREATE TABLE s.two (a INT)")
    shown = dpforest("budget", "--db", database, "--json").facts["tables"]
    assert [(each["table"], each["spent"]) for each in shown] == [("one", 0), ("s.two", 0)]
    refused(dpforest("budget", "set", "--db", database, "--epsilon", "1"), "--table", code=2)


def test_a_ledger_may_lie_elsewhere(tmp_path: Path) -> None:
    db, ledger = tmp_path / "d.duckdb", tmp_path / "book"
    make(db, "CREATE TABLE visits (age INT CHECK (age BETWEEN 0 AND 9), ill BOOLEAN)")
    assert dpforest(*train(db, "--ledger", ledger)).code == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["book", "d.duckdb"]
    shown = ("budget", "--db", db, "--table", "visits")
    assert dpforest(*shown, "--ledger", ledger, "--json").facts["spent"] == 1
    refused(dpforest(*shown), "does not hold the last debit", "--ledger")


def test_budgets_follow_a_table_that_is_renamed(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "2")
    make(db, "ALTER TABLE visits RENAME TO calls", "CREATE TABLE visits AS FROM fresh")
    facts = dpforest("budget", "--db", db, "--table", "calls", "--json").facts
    assert (facts["table"], facts["cap"], facts["spent"]) == ("calls", 2, 1)


def test_a_list_of_budgets_counts_the_tables_that_may_be_a_missing_one(db: Path) -> None:
    """Else the only one that is named is taken for it."""
    listed = ("budget", "--db", db)
    assert dpforest("budget", "set", *listed[1:], "--table", "visits", "--epsilon", "2").code == 0
    make(db, "ALTER TABLE visits RENAME TO calls", "COMMENT ON TABLE calls IS NULL")
    said = dpforest(*listed).err
    assert said.count('"visits", which has a cap, is gone') == 1
    assert "The same may be true of another table." in said
    make(db, "CREATE TABLE third AS FROM fresh")
    assert "The same may be true of 2 other tables." in dpforest(*listed).err
    make(db, "DROP TABLE third", "DROP TABLE fresh")
    assert "The same may be true" not in dpforest(*listed).err


def test_show_says_once_that_there_is_no_ledger(tmp_path: Path) -> None:
    """Whatever the budget belongs to: a table, or a name."""
    database, book = tmp_path / "new.duckdb", tmp_path / "none"
    make(database, "CREATE TABLE visits (age INTEGER)")
    table = dpforest("budget", "show", "--db", database, "--table", "visits")
    assert "There is no such ledger yet" in table.err
    assert "New ledger" not in table.err
    named = dpforest("budget", "show", "--dataset", "visits", "--ledger", book)
    assert "New ledger" in named.err
    assert "There is no such ledger yet" not in named.err


def test_a_run_is_listed_with_its_file_if_its_model_is_not_stored(db: Path, tmp_path: Path) -> None:
    out = tmp_path / "readmission.json"
    for words in (("--out", out), ("--out", out, "--replace", "--name", "stored")):
        assert dpforest(*train(db, *words)).code == 0
    shown = dpforest("budget", "show", "--db", db, "--table", "visits", "--json").facts
    assert [run["model"] for run in shown["entries"]] == ["risk", "readmission.json", "stored"]
    assert "readmission.json" in dpforest("budget", "--db", db, "--table", "visits").out


def test_the_ledger_keeps_a_printable_part_of_a_long_name_of_a_file(
    db: Path, tmp_path: Path
) -> None:
    out = tmp_path / f"a\n\x1b{'x' * 240}.json"
    assert dpforest(*train(db, "--out", out)).code == 0
    shown = dpforest("budget", "show", "--db", db, "--table", "visits", "--json").facts
    assert shown["entries"][-1]["model"] == "a??" + "x" * 197


def test_the_ledger_keeps_the_measure_of_every_query(db: Path) -> None:
    for words in ((), ("--recipe", "boosted", "--delta", "1e-6")):
        assert dpforest(*train(db, "--name", "new", "--replace", *words)).code == 0
    asked = ("evaluate", "--db", db, "--model", "new", "--table", "visits", "--epsilon", "1")
    assert dpforest(*asked).code == 0
    entries = Ledger(Path(f"{db}.ledger")).read().entries
    plans = [entry.plan for entry in entries if isinstance(entry, Debit)]
    measures = [{query["measure"] for query in plan} for plan in plans[-3:]]
    assert measures == [{"ε"}, {"ε", "μ²"}, {"ε"}]


def test_a_ledger_alone_lists_all_that_it_holds(db: Path, tmp_path: Path) -> None:
    """Also a table that is retired, which no database has, and datasets whose name is forgotten."""
    ledger = f"{db}.ledger"
    before = Path(ledger).read_bytes()
    refused(dpforest("budget", "--ledger", tmp_path / "none"), "no ledger", "--ledger")
    assert not (tmp_path / "none").exists()
    found = dpforest("budget", "--ledger", ledger, "--json").facts
    assert found["ledger"] == ledger
    (one,) = found["budgets"]
    assert (one["kind"], one["name"], one["place"]) == ("table", "visits", str(db))
    assert (one["spent"], len(one["entries"])) == (1, 1)
    assert Path(ledger).read_bytes() == before
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "3")
    make(db, "DROP TABLE visits")
    assert dpforest("budget", "retire", "--db", db, "--table", "visits").code == 0
    dpforest("budget", "set", "--dataset", "exports", "--epsilon", "2", "--ledger", ledger)
    lines = [
        " ".join(line.split()) for line in dpforest("budget", "--ledger", ledger).out.split("\n")
    ]
    assert f"retired table visits {db} 3 1 2 0 1" in lines
    assert "dataset exports 2 0 2 0 0" in lines
    for words in (("--table", "visits"), ("set", "--epsilon", "1", "--table", "visits")):
        refused(dpforest("budget", "--ledger", ledger, *words), "--db", code=2)


def test_a_ledger_alone_says_where_tables_and_files_are(db: Path, tmp_path: Path) -> None:
    """Names may have the sign that a ledger puts between the file and the table."""
    folder = tmp_path / "a::b"
    folder.mkdir()
    other, file, book = folder / "d.duckdb", folder / "rows.parquet", tmp_path / "book"
    make(other, 'CREATE TABLE "x::y" (a INTEGER)', f"COPY (SELECT 1 AS a) TO '{file}'")
    dpforest("budget", "set", "--db", other, "--table", "x::y", "--epsilon", 1, "--ledger", book)
    dpforest("budget", "set", "--db", file, "--epsilon", 1, "--ledger", book)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        set_budget(con, "t", epsilon=1, ledger=book)
    found = dpforest("budget", "--ledger", book, "--json").facts["budgets"]
    assert [one["place"] for one in found] == [str(other), str(file), ":memory:"]
    copy = tmp_path / "copy-of-2026"
    copy.write_bytes(Path(f"{db}.ledger").read_bytes())
    (one,) = dpforest("budget", "--ledger", copy, "--json").facts["budgets"]
    assert (one["name"], one["place"]) == ("visits", "")


def test_a_list_of_budgets_reads_the_entries_as_often_for_many_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(list):  # type: ignore[type-arg]
        passes = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            Counted.passes += 1
            return super().__iter__()

    def passes(datasets: int) -> int:
        ledger = Ledger(tmp_path / f"{datasets}.ledger")
        with ledger.writing() as chain:
            for number in range(datasets):
                holder = Holder(f"{number}", f"d{number}", f"dataset::d{number}")
                chain.set_cap(holder, NANO, 0, ROW, raise_cap=False)
        chain = ledger.read()
        chain.entries = Counted(chain.entries)
        Counted.passes = 0
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "read", lambda _: chain)
            found = dpforest("budget", "--ledger", ledger.path, "--json").facts["budgets"]
        assert [one["cap"] for one in found] == [1] * datasets
        return Counted.passes

    assert passes(40) == passes(3)
