"""The verbs models, rules and recipes list, show and move what is there."""

from __future__ import annotations

import json
import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from shell import FOREST_KEYS, dpforest, make, refused, state, train


def test_models_list_show_drop(db: Path) -> None:
    listed = dpforest("models", "--db", db, "--json").facts
    assert set(listed) == {"models"}
    assert [set(model) for model in listed["models"]] == [
        FOREST_KEYS | {"target", "table", "stored"}
    ]
    assert "risk" in dpforest("models", "list", "--db", db).text
    shown = dpforest("models", "show", "risk", "--db", db, "--json").facts
    more = {"table", "target", "classes", "attributes", "used", "guarantee", "limited", "picked"}
    assert set(shown) == FOREST_KEYS | more
    assert shown["classes"] == ["false", "true"]
    assert set(shown["used"]) <= set(shown["attributes"])
    assert shown["used"]
    assert f"splits on {shown['used'][0]}" in " ".join(
        dpforest("models", "show", "risk", "--db", db).text.split()
    )
    assert "ε = 1, δ = 0, per row" in dpforest("models", "show", "risk", "--db", db).text
    refused(dpforest("models", "show", "--db", db), "models show NAME", code=2)
    refused(dpforest("models", "drop", "zzz", "--db", db), '"zzz"', 'it has "risk"')
    refused(dpforest("rules", "--model", "risk.jsn", "--db", db), "a file that ends in .json")
    refused(dpforest("models", "drop", "risk"), "--db", code=2)
    for words, sentence in (
        (("list", "risk"), "models show risk"),
        (("show", "risk", "--model", "other"), "--model"),
        (("drop", "risk", "--out", "m.json"), "--out goes with models export"),
        (("drop", "risk", "--replace"), "--replace goes with"),
        (("export", "risk", "--out", "m.json", "--name", "m"), "--name goes with models import"),
    ):
        refused(dpforest("models", *words, "--db", db), sentence, code=2)
    dropped = dpforest("models", "drop", "RISK", "--db", db, "--json").facts
    assert dropped == {"model": "RISK", "action": "drop"}
    assert dpforest("models", "--db", db).text == "There is no model in the database.\n"
    assert dpforest("budget", "--db", db, "--json").facts["spent"] == 1, "the debit stays"


def test_models_export_and_import(db: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "m.json", tmp_path / "other.duckdb"
    export = ("models", "export", "risk", "--db", db)
    refused(dpforest(*export), "--out", code=2)
    assert dpforest(*export, "--out", file, "--json").facts == {"model": "risk", "action": "export"}
    refused(dpforest(*export, "--out", file), "--replace")
    assert dpforest(*export, "--out", file, "--replace").code == 0
    duckdb.connect(str(other)).close()
    into = ("models", "import", file, "--db", other)
    assert dpforest(*into, "--json").facts == {"model": "risk", "action": "import"}
    refused(dpforest(*into), '"risk" already', "--replace")
    assert dpforest(*into, "--replace").code == 0
    assert dpforest(*into, "--name", "second").code == 0
    back = tmp_path / "back.json"
    dpforest("models", "export", "second", "--db", other, "--out", back)
    named = json.loads(file.read_text()) | {"name": "second"}
    assert json.loads(back.read_text()) == named


def test_what_shows_a_model_says_that_it_is_not_private(db: Path) -> None:
    trained = dpforest(*train(db, "--name", "open", "--seed", "1", "--not-private"))
    assert "Note: After a run that is not private, this table cannot be capped." in trained.err
    for verb in ("show", "rules"):
        for more in ((), ("--json",)):
            said = dpforest(verb, "--db", db, "--model", "open", *more)
            assert "Warning: This model is not private, so do not publish it" in said.err
            assert not more or said.facts["private"] is False
            assert "not private" not in dpforest(verb, "--db", db, "--model", "risk", *more).err


def test_many_rules_come_with_a_hint_how_to_see_fewer(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("rules", "--db", db, "--model", "risk")
    assert "--top" not in dpforest(*words).err
    monkeypatch.setattr(sys.modules["dpforest_duckdb.cli.rules"], "SCREEN", 1)
    assert re.search(r"^\d+ rules: --top 20 .*, --leaves-only", dpforest(*words).err, re.MULTILINE)
    assert "--leaves-only" not in dpforest(*words, "--leaves-only").err
    assert "rules:" not in dpforest(*words, "--top", 2).err


def test_rules_are_every_path_with_noisy_figures(db: Path) -> None:
    found = dpforest("rules", "--db", db, "--model", "risk", "--json").facts
    assert set(found) == {"private", "rules"}
    assert found["private"] is True
    for rule in found["rules"]:
        assert {"rule", "counts", "noise", "confidence", "support", "prediction"} <= set(rule)
    nodes = dpforest("models", "show", "risk", "--db", db, "--json").facts["nodes"]
    assert len(found["rules"]) == nodes
    leaves = dpforest("rules", "--db", db, "--model", "risk", "--leaves-only", "--json").facts
    assert leaves["rules"] == [rule for rule in found["rules"] if rule["leaf"]]
    most = dpforest("rules", "--db", db, "--model", "risk", "--top", 3, "--json").facts["rules"]
    telling = [rule for rule in found["rules"] if rule["leaf"] or rule["depth"]]
    assert len(telling) < len(found["rules"])
    support = sorted((rule["support"] or 0 for rule in telling), reverse=True)
    assert [rule["support"] for rule in most] == support[:3]
    said = dpforest("rules", "--db", db, "--model", "risk")
    assert "age <= " in said.text
    assert "classes false, true" in said.err


def test_recipes() -> None:
    facts = dpforest("recipes", "--json").facts
    assert set(facts) == {"recipes"}
    keys = {"name", "title", "year", "private_as_published", "rigorous_repair", "pieces"}
    for recipe in facts["recipes"]:
        assert keys <= set(recipe)
    assert {"auto", "dpdf"} <= {recipe["name"] for recipe in facts["recipes"]}
    assert "Fletcher" in dpforest("recipes").text
    shown = dpforest("recipes", "dpdf").text
    for word in ("paper", "flaw", "repair", "Gini"):
        assert word in shown
    assert "depth      5, with the root at 1" in shown
    assert "one_tree_per_attribute" not in shown
    (auto,) = dpforest("recipes", "auto", "--json").facts["recipes"]
    assert set(auto["picks"]) == {
        *("boosted", "rooted-tables", "tree-beside-sums"),
        *("joint-tables", "class-means", "log-odds"),
    }
    assert f"picks      one of {', '.join(auto['picks'])}" in dpforest("recipes", "auto").text
    adapts = "With other numbers of rows it asks other queries"
    assert {name: adapts in dpforest("recipes", name).text for name in ("auto", "privatree")} == {
        "auto": True,
        "privatree": False,
    }
    assert "ε = 2 on six categorical" in dpforest("recipes", "dpdf", "--epsilon", "2").text
    refused(dpforest("recipes", "dpfd"), "did you mean dpdf", code=2)
    refused(dpforest("recipes", "--markdown", "--json"), "choose one", code=2)
    refused(dpforest("recipes", "--epsilon", "2"), "goes with the name of a recipe", code=2)


def test_no_verb_writes_through_a_link(db: Path, tmp_path: Path) -> None:
    """The link may lead to the ledger, or to rows. The refusal comes before the debit."""
    ledger, copied = Path(f"{db}.ledger"), tmp_path / "rows.csv"
    with duckdb.connect(str(db)) as con:
        con.sql("FROM visits").write_csv(str(copied))
    model = tmp_path / "risk.json"
    dpforest("models", "export", "risk", "--db", db, "--out", model)
    links = [tmp_path / name for name in ("link.json", "link.html", "link.csv")]
    for link in links:
        link.symlink_to(ledger)
    out_json, out_html, out_csv = links
    before = state(db), ledger.read_bytes()
    for words in (
        train(db, "--name", "again", "--out", out_json),
        ("models", "export", "risk", "--db", db, "--out", out_json),
        ("report", "--model", "risk", "--db", db, "--out", out_html),
        ("score", "--db", copied, "--model", model, "--into", out_csv),
    ):
        refused(dpforest(*words, "--replace"), "is a link: name the file that it leads to.")
    assert (state(db), ledger.read_bytes()) == before
    assert all(link.is_symlink() for link in links)


def test_models_show_epsilon_in_all_of_its_digits(db: Path) -> None:
    dpforest(*train(db, "--name", "exact", "--epsilon", "0.123456789"))
    assert "0.123456789 " in dpforest("models", "show", "exact", "--db", db).text.replace("\n", " ")
    assert "0.123456789 " in dpforest("models", "--db", db).text


def test_models_lists_the_day_when_each_was_stored(db: Path, tmp_path: Path) -> None:
    """Which is no part of the model; one that an earlier version stored has none."""
    today = {datetime.now(UTC).date().isoformat()}
    dpforest("models", "export", "risk", "--db", db, "--out", tmp_path / "m.json")
    assert "stored" not in json.loads((tmp_path / "m.json").read_text())
    dpforest("models", "import", tmp_path / "m.json", "--db", db, "--name", "new")
    make(
        db,
        "UPDATE dpforest.models SET model = '{}' WHERE name = 'risk'".format(
            (tmp_path / "m.json").read_text().replace("'", "''")
        ),
    )
    today.add(datetime.now(UTC).date().isoformat())
    new, risk = dpforest("models", "--db", db, "--json").facts["models"]
    assert new["stored"] in today
    assert risk["stored"] is None
    lines = dpforest("models", "--db", db).text.strip().splitlines()
    assert lines[0].split()[-1] == "stored"
    assert [line.split()[-1] for line in lines[2:]] == [new["stored"], "visits"]


def test_no_verb_replaces_a_ledger_or_a_database(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost ledger cannot be restored, and it may have any name. Nothing is debited."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect(str(db)) as con:
        con.sql("FROM visits").write_csv("rows.csv")
    dpforest("models", "export", "risk", "--db", db, "--out", "risk.json")
    names = ("led.json", "led.html", "led.parquet", "led.csv")
    train_out = train(db, "--name", "again", "--out")
    verbs = [
        (*train_out, "led.json"),
        ("models", "export", "risk", "--db", db, "--out", "led.json"),
        ("report", "--model", "risk", "--db", db, "--out", "led.html"),
        ("score", "--db", "rows.csv", "--model", "risk.json", "--into", "led.parquet"),
        ("score", "--db", "rows.csv", "--model", "risk.json", "--into", "led.csv"),
    ]
    for kept in (Path(f"{db}.ledger"), db):
        for name in names:
            shutil.copy(kept, name)
        before = state(db)
        for words in verbs:
            for more in ((), ("--replace",)):
                said = refused(dpforest(*words, *more), "so it is not replaced: name another file.")
                assert "pass --replace" not in said
        assert state(db) == before
        assert all(Path(name).read_bytes() == kept.read_bytes() for name in names)


def test_each_verb_replaces_only_what_it_writes(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.json").write_text('{"plan": 1}')
    Path("old.html").write_text("<html></html>")
    Path("notes.html").write_text("a text")
    export = ("models", "export", "risk", "--db", db, "--replace", "--out")
    report = ("report", "--model", "risk", "--db", db, "--replace", "--out")
    refused(dpforest(*export, "notes.json"), "notes.json holds no model")
    refused(dpforest(*report, "notes.html"), "notes.html holds no report")
    for _ in range(2):
        assert dpforest(*export, "m.json").code == 0
        assert dpforest(*report, "old.html").code == 0
