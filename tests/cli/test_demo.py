"""The demo: a whole session in its own folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import duckdb
import pytest
from shell import dpforest, query, refused

FILES = {"nursery.duckdb", "nursery.duckdb.ledger", "score.sql"}
KEYS = {"database", "model", "recipe", "epsilon", "private", "rows", "accuracy", "log_loss"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "home with space"
    facts = dpforest("demo", "--dir", folder, "--json").facts
    assert set(facts) >= KEYS
    assert facts["private"] is True
    assert facts["accuracy"] > 0.7
    assert (facts["epsilon"], facts["spent"], facts["left"]) == (1, 1, 2)
    return folder


def test_it_leaves_a_database_a_ledger_and_a_script(home: Path) -> None:
    assert {entry.name for entry in home.iterdir()} == FILES
    database = home / "nursery.duckdb"
    counted = query(database, "SELECT count(*) FROM (FROM nursery UNION ALL FROM nursery_test)")
    assert counted == [(12_960,)]
    assert dpforest("models", "--db", database, "--json").facts["models"][0]["model"] == "nursery"
    budget = dpforest("budget", "--db", database, "--json").facts
    assert (budget["cap"], budget["spent"], budget["left"]) == (3, 1, 2)


def test_its_script_needs_nothing_of_this_package(home: Path) -> None:
    script = (home / "score.sql").read_text(encoding="utf-8")
    with duckdb.connect(str(home / "nursery.duckdb")) as con:
        expected = con.execute("FROM scored ORDER BY ALL").fetchall()
        con.execute(f"BEGIN; DROP TABLE scored; {script}")
        assert con.execute("FROM scored ORDER BY ALL").fetchall() == expected
        con.execute("ROLLBACK")


def test_a_demo_whose_tables_could_not_be_written_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise duckdb.IOException("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("dpforest_duckdb.demo.render", full)
        refused(dpforest("demo", "--dir", tmp_path), "cannot be written", "disk is full")
    assert not list(tmp_path.iterdir())
    assert dpforest("demo", "--dir", tmp_path).code == 0


@pytest.mark.more
def test_a_demo_that_was_killed_can_be_run_again(tmp_path: Path) -> None:
    (tmp_path / "nursery.duckdb").write_bytes(b"unfinished")
    (tmp_path / "nursery.duckdb.wal").touch()
    (tmp_path / "nursery.duckdb.wal.checkpoint").touch()
    (tmp_path / ".dpforest-x1y2z3").touch()
    (tmp_path / ".dpforest-spill-x").mkdir()
    assert dpforest("demo", "--dir", tmp_path).code == 1
    assert dpforest("demo", "--dir", tmp_path, "--replace").code == 0
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"nursery.duckdb", "nursery.duckdb.ledger", "score.sql"}


@pytest.mark.more
def test_the_commands_of_the_demo_can_be_repeated(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is run as printed after a second demo; only the model gets a new name."""
    monkeypatch.chdir(tmp_path)
    said = dpforest("demo")
    shown = re.findall(r"^\$ dpforest (.*)$", said.text, re.MULTILINE)
    verbs = [command.split()[0] for command in shown]
    assert verbs == ["budget", "train", "evaluate", "sql", "rules", "budget"]
    for command in shown:
        words = shlex.split(command.partition(" > ")[0])
        if words[0] == "train":
            words += ["--name", "again"]
        assert dpforest(*words).code == 0, command


def test_it_overwrites_only_its_own_files_and_only_with_replace(home: Path, tmp_path: Path) -> None:
    before = (home / "score.sql").read_bytes()
    refused(dpforest("demo", "--dir", home), "not empty", "--replace")
    assert (home / "score.sql").read_bytes() == before
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    refused(dpforest("demo", "--dir", tmp_path, "--replace"), "other files", "--dir")
    refused(dpforest("demo", "--dir", mine), "cannot be created", "--dir")
    assert mine.read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]
    fresh = tmp_path / "fresh"
    assert dpforest("demo", "--dir", fresh).code == 0
    assert dpforest("demo", "--dir", fresh, "--replace", "--json").facts["spent"] == 1
    assert {entry.name for entry in fresh.iterdir()} == FILES
