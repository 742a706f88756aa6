"""Bad input from outside: one sentence, the right exit code, and nothing changed."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shell import PROGRAM, Said, dpforest, make, query, refused, run, state, train
from variants import some

from dpforest_duckdb import load_forest
from dpforest_duckdb.engine.connect import open_database

COLUMNS = """
target = "ill"
[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 99
[[column]]
name = "city"
kind = "categorical"
domain = ["Bern", "Genf", "Zug"]
[[column]]
name = "ill"
kind = "categorical"
domain = [false, true]
"""


def bare(db: Path, *words: object) -> tuple[object, ...]:
    """A training command on visits that leaves the target to the domain file."""
    cost = () if "--epsilon" in words else ("--epsilon", "1")
    return ("train", "--db", db, "--table", "visits", *cost, *words)


@some(
    ("old", "new", "words"),
    [
        ('name = "city"', 'name = "town"', ('no column "town"', "--exclude")),
        ('name = "city"', 'name = "Age"', ('"age" and "Age"', "one column")),
        ('name = "city"', 'name = ""', ("[[column]]", "no name")),
        ('name = "age"', 'name = "city"', ('"city"',)),
        ('name = "age"', 'name = "who"', ('"who" is declared numeric but has type VARCHAR',)),
        ('kind = "numeric"', 'kind = "number"', ('"age"', "kind = ")),
        ('kind = "numeric"', "", ('"age"', "kind = ")),
        ("lower = 0", "lower = 99", ('lower of column "age"', "less than upper")),
        ("lower = 0", "lower = nan", ('lower of column "age"', "finite")),
        ("upper = 99", "upper = inf", ('upper of column "age"', "finite")),
        ("lower = 0", "", ('"age"', "needs lower and upper")),
        ("lower = 0", "lower = [1]", ('lower of column "age"',)),
        ("upper = 99", "upper = 99\nbins = 0", ('bins of column "age"', "1 to 250")),
        ("upper = 99", 'upper = 99\nscale = "cubic"', ('scale of column "age"',)),
        ("upper = 99", "upper = 99\nedges = [2, 1]", ('edges of column "age"', "ascend")),
        ("upper = 99", "upper = 99\nedges = 3", ('edges of column "age"', "list")),
        ('["Bern", "Genf", "Zug"]', "[]", ('"city" has no categories', "domain")),
        ('["Bern", "Genf", "Zug"]', '["Bern", "Bern"]', ('"city" lists a value twice',)),
        ('["Bern", "Genf", "Zug"]', '"Bern"', ('domain of column "city"', "list")),
        ('["Bern", "Genf", "Zug"]', '["a\\u0000b"]', ('"city"', "NUL")),
        ("[false, true]", "[true]", ('"ill"', "two classes")),
        ("[false, true]", '["yes", "no"]', ('"ill" is BOOLEAN', "cannot hold the classes")),
        ("[false, true]", "", ("TOML",)),
        ('target = "ill"', 'target = "sick"', ('the target "sick"', "[[column]]")),
        ('target = "ill"', "target = 3", ("names no target", "--target")),
        ('target = "ill"', 'target = "age"', ('"age" has no list of classes',)),
        ('target = "ill"', 'target = "ill"\nprivacy_unit = 3', ("privacy_unit",)),
        ('target = "ill"', 'target = "ill"\nprivacy_unit = "zzz"', ('"zzz"', "--privacy-unit")),
        ('target = "ill"', "target = ill", ("TOML", "line 2")),
        ("[[column]]", "[column]", ("TOML",)),
    ],
    keep=10,
)
def test_a_domain_file_with_an_error(
    db: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    assert old in COLUMNS
    file = tmp_path / "visits.toml"
    file.write_text(COLUMNS.replace(old, new, 1))
    before = state(db)
    said = dpforest(*bare(db, "--name", "new", "--domain", file))
    refused(said, *words)
    assert state(db) == before


@some(
    ("sql_type", "facts"),
    [
        ("INTEGER", f"lower = 0\nupper = 1{'0' * 400}"),
        ("INTEGER", "lower = 0\nupper = 1e299"),
        ("INTEGER", 'lower = 0\nupper = 1e299\nscale = "log"'),
        ("HUGEINT", f"edges = [{2**127}]"),
        ("DOUBLE", "lower = -1.7e308\nupper = 1.7e308"),
        ("DOUBLE", 'lower = 1e-299\nupper = 1e299\nscale = "log"'),
        ("DECIMAL(38,10)", f"edges = [{10**28}]"),
        ("DATE", "edges = [1e10]"),
        ("TIMESTAMP", "lower = 0\nupper = 1e20"),
        ("BIGINT", f"domain = [{2**127}]"),
        ("DECIMAL(38,10)", f"domain = [{10**28}]"),
        ("DOUBLE", "domain = [1e305]"),
    ],
    keep=4,
)
def test_numbers_outside_a_type_are_refused_before_the_debit(
    db: Path, tmp_path: Path, sql_type: str, facts: str
) -> None:
    make(db, f"ALTER TABLE visits ADD COLUMN big {sql_type}")
    kind = "categorical" if "domain" in facts else "numeric"
    file = tmp_path / "visits.toml"
    file.write_text(f'{COLUMNS}\n[[column]]\nname = "big"\nkind = "{kind}"\n{facts}\n')
    before = state(db)
    refused(dpforest(*bare(db, "--name", "new", "--domain", file)), '"big"')
    assert state(db) == before


@pytest.mark.parametrize("declared", ["file", "comment", "check"])
def test_bounds_too_close_for_bins_are_refused_before_the_debit(
    db: Path, tmp_path: Path, declared: str
) -> None:
    check = " CHECK (small BETWEEN 0 AND 5e-324)" if declared == "check" else ""
    make(db, f"CREATE TABLE more (small DOUBLE{check}, ill BOOLEAN)")
    make(db, "INSERT INTO more SELECT 0, i % 3 = 0 FROM range(400) r(i)")
    if declared == "comment":
        note = json.dumps({"kind": "numeric", "lower": 0, "upper": 5e-324})
        make(db, f"COMMENT ON COLUMN more.small IS '{note}'")
    file = tmp_path / "more.toml"
    small = '[[column]]\nname = "small"\nkind = "numeric"\nlower = 0\nupper = 5e-324\n'
    file.write_text(f'target = "ill"\n{small}[[column]]{COLUMNS.rpartition("[[column]]")[2]}')
    where = ("--domain", file) if declared == "file" else ("--target", "ill")
    before = state(db)
    words = ("train", "--db", db, "--table", "more", "--epsilon", "1", "--name", "new", *where)
    refused(dpforest(*words), 'lower and upper of column "small"', "too close", "edges")
    assert state(db) == before


def test_a_domain_file_that_cannot_be_read(db: Path, tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'target = "\xe9"')
    before = state(db)
    for file, words in (
        (tmp_path / "no.toml", ("no domain file", "check its path")),
        (tmp_path, ("UTF-8",)),
        (latin, ("UTF-8",)),
    ):
        refused(dpforest(*bare(db, "--name", "new", "--domain", file)), str(file), *words)
    assert state(db) == before


@some(
    ("epsilon", "words", "code"),
    [
        ("0", ("--epsilon", "greater than zero"), 2),
        ("-1", ("--epsilon", "greater than zero"), 2),
        ("nan", ("--epsilon", "finite"), 2),
        ("inf", ("--epsilon", "finite"), 2),
        ("-Infinity", ("--epsilon", "finite"), 2),
        ("1e300", ("--epsilon", "at most 1000000"), 2),
        ("1e-300", ("--epsilon", "too small"), 1),
        ("lots", ("--epsilon", "number"), 2),
        ("1,5", ("--epsilon", "number"), 2),
        ("", ("--epsilon", "number"), 2),
    ],
    keep=5,
)
def test_epsilon(db: Path, epsilon: str, words: tuple[str, ...], code: int) -> None:
    before = state(db)
    refused(dpforest(*train(db, "--name", "new", "--epsilon", epsilon)), *words, code=code)
    if code == 2:
        shared = ("--db", db, "--table", "visits", "--epsilon", epsilon)
        refused(dpforest("evaluate", "--model", "risk", *shared), *words, code=2)
        refused(dpforest("budget", "set", *shared), *words, code=2)
    assert state(db) == before


@pytest.mark.parametrize("delta", ["-1", "1", "nan", "x"])
def test_delta(db: Path, delta: str) -> None:
    before = state(db)
    refused(dpforest(*train(db, "--name", "new", "--delta", delta)), "--delta", code=2)
    cap = ("budget", "set", "--db", db, "--table", "visits", "--epsilon", "2", "--delta", delta)
    refused(dpforest(*cap), "--delta", code=2)
    assert state(db) == before


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (("--target", "zzz"), ('"zzz"', "--target"), 1),
        (("--target", "who"), ('"who"', "not declared"), 1),
        (("--privacy-unit", "zzz"), ('"zzz"', "--privacy-unit"), 1),
        (("--privacy-unit", "ill"), ("target", "--privacy-unit"), 1),
        (("--rows-per-unit", "2"), ("--rows-per-unit", "--privacy-unit"), 2),
        (("--columns", "age,zzz"), ("--columns", '"zzz"'), 1),
        (("--exclude", "age,city"), ("no attribute",), 1),
        (("--recipe", "zzz"), ('"zzz"', "auto"), 1),
        (("--trees", "9999"), ("--trees", "1000"), 2),
        (("--columns", ""), ("--columns names no column",), 2),
        (("--exclude", ""), ("--exclude names no column",), 2),
        (("--memory-limit", "much"), ("--memory-limit",), 1),
        (("--temp-dir", "no/such"), ("--temp-dir", "no/such"), 1),
        (("--ledger", "no/such/file"), ("ledger", "no/such/file", "--ledger"), 1),
        (("--name", "a\nb"), ("printable", "--name"), 1),
    ],
)
def test_options_of_train(db: Path, words: tuple[str, ...], sentence: tuple, code: int) -> None:
    before = state(db)
    refused(dpforest(*train(db, "--name", "new", *words)), *sentence, code=code)
    assert state(db) == before


def test_tables_that_cannot_be_trained_on(db: Path) -> None:
    make(
        db,
        "CREATE VIEW seen AS FROM visits",
        "CREATE SCHEMA other",
        "CREATE TABLE other.visits AS FROM visits",
    )
    before = state(db)
    for table, words in (
        ("zzz", ('no table "zzz"', "--table")),
        ("seen", ('"seen" is a view', "base table")),
        ("zzz.visits", ('"zzz.visits"', "--table")),
        ("", ("--table",)),
    ):
        shared = ("train", "--db", db, "--target", "ill", "--epsilon", "1", "--table", table)
        refused(dpforest(*shared), *words)
        refused(dpforest("domain", "--db", db, "--table", table), *words)
        refused(dpforest("budget", "show", "--db", db, "--table", table), *words)
    assert state(db) == before
    views = ("--db", db, "--model", "risk", "--table", "seen")
    assert dpforest("score", *views, "--into", "s").code == 0, "scoring a view is harmless"
    refused(dpforest("evaluate", *views), "view")


def test_a_column_of_a_wrong_type_or_none(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "visits.toml"
    file.write_text(COLUMNS)
    make(
        db,
        "ALTER TABLE visits DROP COLUMN city",
        "ALTER TABLE visits ADD COLUMN city INTEGER[]",
    )
    before = state(db)
    words = ("train", "--db", db, "--table", "visits", "--epsilon", "1", "--name", "new")
    said = dpforest(*words, "--domain", file)
    refused(said, 'Column "city" has type INTEGER[]', "--exclude")
    shared = ("--db", db, "--model", "risk", "--table", "visits")
    refused(dpforest("score", *shared, "--into", "s"), '"city"')
    refused(dpforest("evaluate", *shared), '"city"')
    assert state(db) == before
    make(db, "ALTER TABLE visits DROP COLUMN city")
    before = state(db)
    refused(dpforest(*words, "--domain", file), 'no column "city"', "--exclude")
    refused(dpforest("score", *shared, "--into", "s"), 'no column "city"')
    refused(dpforest("evaluate", *shared), 'no column "city"')
    refused(dpforest("evaluate", *shared, "--target", "zzz"), 'no column "zzz"', "--target")
    assert state(db) == before
    assert dpforest(*words, "--domain", file, "--exclude", "city").code == 0


ROWS = {
    "strangers": "SELECT 'a' || i, 1000 * i, 'Paris', i % 2 = 0 FROM range(100) r(i)",
    "strange classes": "SELECT 'a' || i, i, 'Bern', 'maybe' FROM range(100) r(i)",
    "nothing but NULL": "SELECT NULL, NULL, NULL, NULL FROM range(100)",
    "none": "SELECT 'a', 1, 'Bern', 'true' WHERE false",
    "one": "SELECT 'a', 1, 'Bern', 'true'",
    "one class": "SELECT 'a' || i, i, 'Zug', 'true' FROM range(100) r(i)",
    "no number": "SELECT i::VARCHAR, ['NaN', 'inf', '-inf', '1e308'][i % 4 + 1]::DOUBLE, "
    "'Bern', i % 2 = 0 FROM range(100) r(i)",
}


@some("rows", ROWS.values(), ids=ROWS.keys(), keep=3)
def test_rows_with_bad_values_train(tmp_path: Path, rows: str) -> None:
    """Private rows must not decide whether a run works."""
    db, file = tmp_path / "d.duckdb", tmp_path / "d.toml"
    file.write_text(COLUMNS)
    make(
        db,
        "CREATE TABLE visits (who VARCHAR, age DOUBLE, city VARCHAR, ill VARCHAR)",
        f"INSERT INTO visits {rows}",
    )
    for unit in ("row", "who"):
        words = ("--name", f"by {unit}", "--domain", file, "--privacy-unit", unit, "--json")
        facts = dpforest(*bare(db, *words)).facts
        assert facts["trees"] >= 1
        assert facts["private"] is True
    shared = ("--db", db, "--model", "by row", "--table", "visits")
    assert dpforest("score", *shared, "--into", "scored").code == 0
    same = "(SELECT count(*) FROM scored WHERE prediction IN ('false', 'true'))"
    assert query(db, f"SELECT count(*) = {same} FROM visits") == [(True,)]
    facts = dpforest("evaluate", *shared, "--json").facts
    assert 0 <= facts["rows"] <= 100
    assert dpforest("evaluate", *shared, "--epsilon", "1", "--json").facts["private"] is True


def test_values_outside_the_domain_go_to_other(tmp_path: Path) -> None:
    """A category that is not in the domain has a cell of its own, in training and in scoring."""
    db, file = tmp_path / "d.duckdb", tmp_path / "d.toml"
    file.write_text(COLUMNS)
    make(
        db,
        "CREATE TABLE visits AS SELECT 1 AS age, ['Bern', 'Genf', 'Paris'][i % 3 + 1] AS city, "
        "i % 3 = 2 AS ill FROM range(3000) r(i)",
    )
    assert dpforest(*bare(db, "--name", "m", "--domain", file, "--epsilon", "20")).code == 0
    make(db, "CREATE TABLE t AS SELECT 1 AS age, unnest(['Lyon', 'Bern']) AS city")
    assert dpforest("score", "--db", db, "--model", "m", "--table", "t", "--into", "s").code == 0
    assert query(db, "SELECT city, prediction FROM s ORDER BY ALL") == [
        ("Bern", False),
        ("Lyon", True),
    ]


NAMES = ['a "b"; DROP TABLE x; --', "{{ 1 }} {% raw %} 'q' 😀 $salt %s \\", "select", " Äß.x "]


@some("name", NAMES, keep=2)
def test_hostile_names_and_categories_go_through_every_verb(tmp_path: Path, name: str) -> None:
    db, quoted = tmp_path / "d.duckdb", '"' + name.replace('"', '""') + '"'
    values = [name, "it's", "{{ x }}", "{% if %}", "--", "😀"]
    enum = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    make(
        db,
        f"CREATE TABLE {quoted} ({quoted} ENUM ({enum}), class ENUM ({enum}), x BOOLEAN)",
        f"INSERT INTO {quoted} SELECT v, v, true FROM (SELECT unnest([{enum}]) v), range(300)",
    )
    file, out = tmp_path / "d.toml", tmp_path / "m.json"
    file.write_text(dpforest("domain", "--db", db, "--table", quoted, "--target", "class").text)
    shared = ("--db", db, "--table", quoted)
    words = ("--epsilon", "9", "--domain", file, "--name", name, "--out", out, "--json")
    assert dpforest("train", *shared, *words).facts["model"] == name
    model = ("--db", db, "--model", name)
    score = ("score", *model, "--table", quoted, "--into", "scored", "--json")
    columns = dpforest(*score).facts["columns"]
    assert columns[-len(values) :] == [f"p_{value}" for value in values]
    assert query(db, f"SELECT avg((prediction = {quoted})::INT) > 0.9 FROM scored") == [(True,)]
    made = '"made by ""it"" 😀"'
    for form in ("view", "table", "macro"):
        text = dpforest("sql", *model, "--as", form, "--into", made, "--json").facts["sql"]
        make(db, text)
        argument = "(" + "'" + quoted.replace("'", "''") + "')" if form == "macro" else ""
        assert query(db, f"SELECT count(*) FROM {made}{argument}") == [(300 * len(values),)]
        make(db, f"DROP {'MACRO TABLE' if form == 'macro' else form} {made}")
    assert dpforest("evaluate", *model, "--table", quoted, "--json").facts["accuracy"] > 0.9
    rules = dpforest("rules", *model, "--json").facts["rules"]
    assert {rule["prediction"] for rule in rules if rule["leaf"]} <= set(values)
    assert dpforest("budget", "--db", db, "--json").facts["entries"][0]["model"] == name
    assert load_forest(out).name == name
    for verb in (("models",), ("models", "show", name), ("rules", "--model", name)):
        assert dpforest(*verb, "--db", db).code == 0
    assert dpforest("models", "drop", name, "--db", db).code == 0


def test_arguments_that_are_not_utf_8(db: Path) -> None:
    before, word = state(db), os.fsdecode(b"\xff")
    model = ("--db", db, "--model", "risk")
    for words in (
        train(db, "--name", word),
        train(db, "--out", f"{word}.json"),
        train(db, "--columns", word),
        ("score", *model, "--table", "fresh", "--into", word),
        ("sql", *model, "--from", word),
    ):
        refused(dpforest(*words), "UTF-8", code=2)
    if os.name == "posix":  # where the words of a command are bytes
        refused(run("models", "show", word, "--db", db), "UTF-8", code=2)
    assert state(db) == before


def test_names_are_compared_as_the_database_does(db: Path) -> None:
    words = ("--table", "MAIN.Visits", "--target", "ILL", "--epsilon", "1", "--name", "New")
    assert dpforest("train", "--db", db, *words).code == 0
    assert dpforest("models", "show", "nEW", "--db", db, "--json").facts["model"] == "New"
    assert dpforest("budget", "--db", db, "--table", "VISITS", "--json").facts["spent"] == 2


def test_files_that_are_no_database(tmp_path: Path) -> None:
    folder = tmp_path / "locker"  # "lock" in a path is not a lock
    folder.mkdir()
    text = folder / "text.duckdb"
    text.write_text("no database")
    words = ("--table", "t", "--epsilon", "1", "--target", "c")
    for path, sentence in (
        (text, ("cannot be opened as a DuckDB database", "--db")),
        (folder / "missing.duckdb", ("no database file", "--db")),
        (folder, ("no database file", "--db")),
        (text / "below", ("no database file", "--db")),
    ):
        refused(dpforest("train", "--db", path, *words), str(path), *sentence)
        refused(dpforest("models", "--db", path), str(path), *sentence)
    assert [entry.name for entry in folder.iterdir()] == ["text.duckdb"]
    assert text.read_text() == "no database"


def test_data_files_are_no_databases(db: Path, tmp_path: Path) -> None:
    """DuckDB shows a data file as a view, and would fetch an extension for one of SQLite."""
    table = tmp_path / "visits.csv"
    table.write_text("age,ill\n1,true\n")
    for path in (table, Path(f"{db}.ledger")):
        before = path.read_bytes()
        refused(dpforest("models", "--db", path), "cannot be opened as a DuckDB database")
        assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["visits.csv"]


def test_no_extension_is_fetched(db: Path) -> None:
    setting = "SELECT current_setting('autoinstall_known_extensions')"
    with open_database(db) as con:
        assert con.execute(setting).fetchall() == [(False,)]


def test_a_file_that_is_not_a_ledger(db: Path) -> None:
    Path(f"{db}.ledger").write_text("no ledger" * 1000)
    before = state(db)
    refused(dpforest(*train(db, "--name", "new")), "not a dpforest ledger", "--ledger")
    refused(dpforest("budget", "--db", db, "--table", "visits"), "not a dpforest ledger")
    assert state(db) == before


def test_a_ledger_that_was_replaced_or_lost(db: Path, tmp_path: Path) -> None:
    ledger = Path(f"{db}.ledger")
    ledger.rename(tmp_path / "moved")
    before = state(db)
    refused(dpforest(*train(db, "--name", "new")), "does not hold the last debit", "--ledger")
    assert state(db) == before
    shown = ("budget", "--db", db, "--table", "visits", "--ledger", tmp_path / "moved", "--json")
    assert dpforest(*shown).facts["spent"] == 1


def test_a_corrupt_model(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    dpforest("models", "export", "risk", "--db", db, "--out", file)
    good = json.loads(file.read_text())
    before = state(db)
    tree = good["trees"][-1]
    for content, words in (
        ("", ("damaged",)),
        ("[1]", ("damaged",)),
        ("{" * 100_000, ("damaged",)),
        (file.read_text()[:-9], ("damaged",)),
        (json.dumps({**good, "schema": "dpforest/9"}), ("schema", "update")),
        (json.dumps({**good, "trees": []}), ("damaged",)),
        (json.dumps({**good, "trees": [{**tree, "first": [0] * len(tree["first"])}]}), ()),
        (json.dumps({**good, "guarantee": {}}), ("damaged",)),
    ):
        file.write_text(content)
        for verb in (
            ("score", "--db", db, "--table", "fresh", "--into", "s", "--model", file),
            ("evaluate", "--db", db, "--table", "fresh", "--model", file),
            ("models", "import", file, "--db", db, "--name", "new"),
            ("sql", "--model", file),
            ("rules", "--model", file),
        ):
            refused(dpforest(*verb), *words)
    refused(dpforest("rules", "--model", tmp_path / "no.json"), "cannot be read", "--model")
    refused(dpforest("rules", "--model", "zzz", "--db", db), '"zzz"', '"risk"', "--model")
    assert state(db) == before


def test_a_corrupt_model_in_the_database(db: Path) -> None:
    make(db, "UPDATE dpforest.models SET model = left(model, 50)")
    refused(dpforest("score", "--db", db, "--table", "fresh", "--into", "s", "--model", "risk"))
    refused(dpforest("models", "show", "risk", "--db", db), "damaged")
    listed = dpforest("models", "--db", db)
    assert listed.code == 0
    assert 'Warning: The model "risk" is damaged' in listed.err
    assert dpforest("models", "drop", "risk", "--db", db).code == 0


def test_a_table_of_models_that_is_not_ours(tmp_path: Path) -> None:
    db = tmp_path / "d.duckdb"
    make(
        db,
        "CREATE TABLE visits (age INT CHECK (age BETWEEN 0 AND 9), ill BOOLEAN)",
        "CREATE SCHEMA dpforest",
        "CREATE VIEW dpforest.models AS SELECT 1 AS x",
    )
    before = state(db)
    refused(dpforest(*train(db, "--name", "new")), '"dpforest"."models"', "rename")
    refused(dpforest("models", "--db", db), '"dpforest"."models"', "rename")
    assert state(db) == before


def test_names_of_new_tables_and_models_that_are_impossible(db: Path) -> None:
    make(db, "CREATE VIEW seen AS FROM fresh")
    before = state(db)
    score = ("score", "--db", db, "--model", "risk", "--table", "fresh", "--replace", "--into")
    for into, words, code in (
        ("", ("--into",), 2),
        ("a.b.c", ("--into", "schema.table"), 2),
        ("seen", ('"seen"', "--into"), 1),
        ("no_schema.t", ('schema "no_schema"', "--into"), 1),
    ):
        refused(dpforest(*score, into), *words, code=code)
    missing = ("--db", db, "--model", "risk", "--table", "zzz")
    refused(dpforest("score", *missing, "--into", "s"), 'no table "zzz"', "--table")
    refused(dpforest("evaluate", *missing), 'no table "zzz"', "--table")
    assert state(db) == before


def test_a_table_to_score_that_is_not_there_gives_sql_for_elsewhere(db: Path) -> None:
    assert (
        'FROM "elsewhere" AS t'
        in dpforest(*("sql", "--db", db, "--model", "risk", "--from", "elsewhere")).text
    )


def test_a_database_that_another_process_holds(db: Path) -> None:
    before = state(db)
    program = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); "
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        for verb in (train(db, "--name", "new"), ("models", "--db", db)):
            refused(dpforest(*verb), str(db), "in use by another process")
    finally:
        holder.kill()
        holder.communicate()
    assert state(db) == before


def plainly(*words: object) -> Said:
    """A command by a user who is not root."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_without_privilege, *words).result()


def _without_privilege(*words: object) -> Said:
    """Root ignores file modes. A thread without two of its capabilities (Linux) does not, nor do
    the threads that it starts; it cannot get them back.
    """
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
        held = (ctypes.c_uint32 * 6)()
        if not hasattr(libc, "capget") or libc.capget(header, held) != 0:
            pytest.skip("root's right to write read-only files cannot be given up here")
        for kind in (0, 1):  # effective and permitted: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            held[kind] &= ~0b110
        assert libc.capset(header, held) == 0
    return dpforest(*words)


def test_a_read_only_database(db: Path, tmp_path: Path) -> None:
    db.chmod(0o444)
    before, out = state(db), tmp_path / "m.json"
    model = ("--db", db, "--model", "risk")
    refused(plainly(*train(db, "--name", "new")), "read-only", "--out")
    refused(
        plainly("score", *model, "--table", "fresh", "--into", "s"), "read-only", "dpforest sql"
    )
    cap = ("budget", "set", "--db", db, "--table", "visits", "--epsilon", "4")
    refused(plainly(*cap), "open it for writing")
    refused(plainly("models", "drop", "risk", "--db", db), "read-only", "writable")
    assert state(db) == before
    assert plainly(*train(db, "--out", out)).code == 0, "the model goes to a file"
    assert dpforest("budget", "--db", db, "--table", "visits", "--json").facts["spent"] == 2
    assert load_forest(out).private


def test_a_read_only_folder(db: Path, tmp_path: Path) -> None:
    ledger, out = Path(f"{db}.ledger"), tmp_path / "m.json"
    before = state(db)
    for path, mode in ((db, 0o444), (ledger, 0o444), (db.parent, 0o555)):
        path.chmod(mode)
    refused(plainly(*train(db, "--out", db.parent / "m.json")), "cannot be written", "--out")
    refused(plainly(*train(db, "--out", out)), "ledger", "writable")
    assert not out.exists()
    assert state(db) == before
    db.parent.chmod(0o755)


def test_a_full_disk_before_the_debit(db: Path) -> None:
    """No file can grow, as a limit that only this process has."""

    def nothing_fits() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    before = state(db)
    said = run(*train(db, "--name", "new"), preexec_fn=nothing_fits)
    refused(said, "ledger", "disk")
    assert state(db) == before


@pytest.fixture
def small_disk(db: Path) -> Iterator[Path]:
    """A database on a disk of its own, of 8 MB."""
    disk = db.parent.parent / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted here, so no disk can be filled")
    try:
        for file in db.parent.iterdir():
            shutil.copy(file, disk)
        yield disk / db.name
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_after_the_debit(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has room, the model does not: the debit stays, there is no half of a model, and
    the whole one is kept elsewhere.
    """
    db, filler = small_disk, small_disk.parent / "filler"
    long = ", ".join(f"'{number:0300}'" for number in range(300))  # every model holds its domain
    make(db, f"ALTER TABLE visits ADD COLUMN long ENUM ({long})")
    wide, out = train(db, "--depth", "1"), db.parent / "m.json"

    def filled() -> None:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        os.truncate(filler, filler.stat().st_size - 60_000)

    filled()
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    refused(dpforest(*wide, "--out", out), "m.json", "disk", "visits.json")
    assert sorted(file.name for file in db.parent.iterdir() if "m.json" in file.name) == []
    filler.unlink()
    filled()
    refused(dpforest(*wide, "--name", "new"), "DuckDB could not", "disk", "new.json")
    filler.unlink()
    ((comment,),) = query(db, "SELECT comment FROM duckdb_tables() WHERE table_name = 'visits'")
    make(db, f"COMMENT ON TABLE visits IS '{'x' * 80_000}\n{comment}'")  # is written again
    filled()
    refused(dpforest(*wide, "--name", "new"), "DuckDB could not", "disk")
    filler.unlink()
    budget = dpforest("budget", "--db", db, "--table", "visits", "--json").facts
    assert budget["spent"] == 4
    assert [entry["state"] for entry in budget["entries"]] == [
        *("done", "done", "done", "failed")  # two were trained, and are kept elsewhere
    ]
    for name in ("visits", "new"):
        assert load_forest(folder / f"{name}.json").private
    models = dpforest("models", "--db", db, "--json").facts["models"]
    assert [model["model"] for model in models] == ["risk"]
    assert query(db, "SELECT count(*) FROM visits") == [(1000,)]


def test_ctrl_c_leaves_only_the_debit(db: Path) -> None:
    make(
        db,
        "INSERT INTO visits SELECT 'x' || i, i % 100, 'Bern', i % 7 = 0 FROM range(300_000) r(i)",
    )
    before = state(db)
    words = train(db, "--name", "new", "--recipe", "greedy-tree", "--trees", "200", "--depth", "8")
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    ledger = Path(f"{db}.ledger")
    end = time.monotonic() + 30
    while ledger.read_bytes() == before.ledger and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)  # somewhere in the level loop
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert out == b""
    assert err.decode().splitlines()[-1].startswith("Interrupted: ")
    assert b"Traceback" not in err
    after = state(db)
    budget = dpforest("budget", "--db", db, "--table", "visits", "--json").facts
    assert budget["spent"] == 2
    assert budget["entries"][-1]["state"] == "interrupted"
    assert after.files == before.files, "no spill is left"
    assert after.tables["dpforest.models"] == before.tables["dpforest.models"]
    assert after.tables["main.visits"][1:] == before.tables["main.visits"][1:]
