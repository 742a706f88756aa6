"""Every verb of the command line: what it prints, where, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import dpforest, refused, state, train

FOREST_KEYS = {"model", "recipe", "epsilon", "delta", "private", "trees", "nodes", "depth"}


def test_train_reports_the_forest_and_nothing_else(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--json"))
    assert set(said.facts) == FOREST_KEYS
    assert said.facts["model"] == "again"
    assert said.facts["private"] is True
    assert (said.facts["epsilon"], said.facts["delta"]) == (1, 0)
    assert 'Taken as public: "ill" and its 2 classes, 2 attributes' in said.err
    assert 'Protected: each row of table "visits"' in said.err
    assert 'Spent on table "visits" so far: ε = 2.' in said.err
    models = dpforest("models", "--db", db, "--json").facts["models"]
    assert [model["model"] for model in models] == ["again", "risk"]


def test_train_for_people(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--timings", "--delta", "0.000001"))
    for word in ('stored as "again"', "auto", "ε = 1, δ = 0, per row"):
        assert word in said.text
    for word in ("Timings rest on private rows", " s  encode", "spend no δ"):
        assert word in said.err
        assert word not in said.out


def test_dry_run_touches_nothing(db: Path) -> None:
    before = state(db)
    said = dpforest(*train(db, "--dry-run", "--json", "--name", "again"))
    assert set(said.facts) == {"recipe", "cost", "left", "trees", "depth", "plan"}
    assert said.facts["cost"] == 1
    assert said.facts["left"] is None
    for query_ in said.facts["plan"]:
        assert set(query_) == {"purpose", "mechanism", "epsilon", "depths", "trees", "noise"}
        spread = query_["noise"]
        # counts have the discrete Laplace's deviation, a little below the continuous one
        assert spread is None or 0.5 < spread * query_["epsilon"] < 2**0.5
    assert any(query_["noise"] for query_ in said.facts["plan"])
    table = dpforest(*train(db, "--dry-run", "--name", "again")).text
    assert "cost ε = 1" in table
    assert "discrete Laplace" in table
    assert state(db) == before


def test_dry_run_says_what_is_left_of_a_cap(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "1.5")
    said = dpforest(*train(db, "--dry-run", "--name", "again"))
    assert "left ε = 0.5" in said.text
    assert "does not allow this run" in said.err


def test_show_sql_is_on_stderr_and_marks_no_value(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--show-sql", "--json"))
    assert set(said.facts) == FOREST_KEYS
    for word in ("CREATE", "GROUP BY", "$salt"):
        assert word in said.err or word == "$salt"
    assert said.err.count("CREATE TEMP") > 1


@pytest.mark.parametrize("seed", [("--seed", "1"), ("--not-private",)])
def test_a_seed_must_be_asked_for_twice(db: Path, seed: tuple[str, ...]) -> None:
    before = state(db)
    refused(dpforest(*train(db, "--name", "again", *seed)), "--seed", "--not-private", code=2)
    assert state(db) == before


def test_a_seed_repeats_and_is_flagged(db: Path, tmp_path: Path) -> None:
    texts = []
    for name in ("a.json", "b.json"):
        out = tmp_path / name
        said = dpforest(*train(db, "--seed", "5", "--not-private", "--out", out, "--json"))
        assert said.facts["private"] is False
        assert "Warning" in said.err
        texts.append(out.read_text())
    assert texts[0] == texts[1]
    assert "-- private: NO" in dpforest("sql", "--model", tmp_path / "a.json").text


def test_a_seed_is_refused_on_a_capped_table(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    before = state(db)
    said = dpforest(*train(db, "--name", "again", "--seed", "5", "--not-private"))
    refused(said, "visits", "not private")
    assert state(db) == before


def test_a_run_past_the_cap_is_refused(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpforest_duckdb.engine.duckdb import DuckDBEngine

    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "1.25")
    before = state(db)
    monkeypatch.setattr(DuckDBEngine, "encode", lambda *a, **k: pytest.fail("rows were read"))
    said = dpforest(*train(db, "--name", "again"))
    refused(said, "ε = 1 but only 0.25", "cap of 1.25", '"visits"')
    assert state(db) == before
