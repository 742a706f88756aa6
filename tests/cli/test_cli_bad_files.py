"""Databases, ledgers and models that are damaged or none get one sentence, and stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import dpforest, make, refused, state, train

from dpforest_duckdb.engine.connection.connect import open_database


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
        (json.dumps({**good, "trees": [{**tree, "counts": None}]}), ("damaged",)),
        (json.dumps({**good, "guarantee": {}}), ("damaged",)),
    ):
        file.write_text(content)
        for verb in (
            ("score", "--db", db, "--table", "fresh", "--into", "s", "--model", file),
            ("evaluate", "--db", db, "--table", "fresh", "--model", file),
            ("models", "import", file, "--db", db, "--name", "new"),
            ("sql", "--model", file),
            ("rules", "--model", file),
            ("show", "--model", file),
        ):
            refused(dpforest(*verb), *words)
    refused(
        dpforest("rules", "--model", tmp_path / "no.json"),
        "There is no model file",
        "check its name",
    )
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


@pytest.mark.parametrize(
    "made",
    [
        "VIEW dpforest.models AS SELECT 1 AS x",
        "VIEW dpforest.models AS SELECT 'a' AS name, '{}' AS model",
        "TABLE dpforest.models (name INTEGER, model VARCHAR)",
    ],
)
def test_a_table_of_models_that_is_not_ours(tmp_path: Path, made: str) -> None:
    db = tmp_path / "d.duckdb"
    make(
        db,
        "CREATE TABLE visits (age INT CHECK (age BETWEEN 0 AND 9), ill BOOLEAN)",
        "CREATE SCHEMA dpforest",
        f"CREATE {made}",
    )
    before = state(db)
    refused(dpforest(*train(db, "--name", "new")), '"dpforest"."models"', "rename")
    refused(dpforest("models", "--db", db), '"dpforest"."models"', "rename")
    assert state(db) == before
