"""Bad options and names get one sentence and change nothing; hostile ones go through."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from shell import dpforest, make, query, refused, run, state, train
from variants import some

from dpforest_duckdb import load_forest


@some(
    ("epsilon", "words", "code"),
    [
        ("0", ("--epsilon", "greater than zero"), 2),
        ("-1", ("--epsilon", "greater than zero"), 2),
        ("nan", ("--epsilon", "finite"), 2),
        ("inf", ("--epsilon", "finite"), 2),
        ("-Infinity", ("--epsilon", "finite"), 2),
        ("1e300", ("--epsilon", "at most 1000000"), 2),
        ("1e-300", ("--epsilon", "at least 1e-9"), 2),
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


@some(
    "number",
    ["0", "9" * 5000, "-1", "1.5", "1e3", "1_000", "٣", " 5", "", "x", "1025"],
    ids=lambda number: number[:5],
    keep=5,
)
def test_whole_numbers(db: Path, number: str) -> None:
    """Python would read some of these as numbers too."""
    before = state(db)
    said = dpforest(*train(db, "--name", "new", "--threads", number))
    assert said.code == 2
    assert "'--threads': it must be a whole number from 1 to 1024." in said.err
    assert state(db) == before


@pytest.mark.parametrize("delta", ["-1", "1", "nan", "x", "1e-19"])
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
        (("--recipe", "zzz"), ('"zzz"', "dpforest recipes"), 2),
        (("--trees", "9999"), ("--trees", "1000"), 2),
        (("--columns", ""), ("--columns names no column",), 2),
        (("--exclude", ""), ("--exclude names no column",), 2),
        (("--memory-limit", "much"), ("--memory-limit",), 1),
        (("--memory-limit", "-1GB"), ("--memory-limit", "negative", "8GB"), 1),
        (("--memory-limit", " -1"), ("--memory-limit", "negative", "8GB"), 1),
        (("--temp-dir", "no/such"), ("--temp-dir", "no/such"), 1),
        (("--ledger", "no/such/file"), ("ledger", "no/such/file", "--ledger"), 1),
        (("--name", "a\nb"), ("printable", "--name"), 2),
        (("--name", "  "), ("not only spaces", "--name"), 2),
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
        ("seen", ('"seen" is a view', "views have no budget")),
        ("zzz.visits", ('"zzz.visits"', "--table")),
        ("zzz.other.visits", (".other.visits.",)),
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
