"""Data files on the command line: domain by options, budgets by path and by name."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from people_files import DECLARED, FIXED, trained
from shell import dpforest, refused
from variants import some

from dpforest_duckdb import load_forest


@pytest.mark.parametrize(
    ("db", "name"),
    {
        "part-1.csv": "part-1",
        "part-*.csv": "part",
        "part-[12].csv": "part",
        "people.parquet": "people",
    }.items(),
)
def test_files_are_trained_on_with_a_domain_by_options(db: str, name: str, folder: Path) -> None:
    said = dpforest(*trained("--db", db, *DECLARED))
    assert said.code == 0, said.err
    assert "from the options" in said.err
    assert "Note: A copy of these files" in said.err
    assert 'Columns not used, because they are not declared: "who".' in said.err
    forest = load_forest("m.json")
    assert forest.private
    assert forest.name == name
    assert [attribute.name for attribute in forest.domain.attributes] == ["age", "city"]


def test_a_new_ledger_of_files_is_announced(folder: Path) -> None:
    """It knows no cap of another ledger, so a misspelt name must be seen."""
    assert "New ledger" in dpforest(*trained("--db", "part-1.csv", *DECLARED)).err
    assert "New ledger" not in dpforest(*trained("--db", "part-1.csv", *DECLARED)).err
    said = dpforest("budget", "--db", "part-1.csv", "--ledger", "bok")
    assert said.code == 0
    assert "New ledger" in said.err
    assert not Path("bok").exists()
    Path("bok").touch()  # as what is left of a ledger that was cut off
    assert "New ledger" in dpforest("budget", "--db", "part-1.csv", "--ledger", "bok").err
    listed = dpforest("budget", "--db", "part-1.csv", "--ledger", "book")
    assert "New ledger" not in listed.err
    first, second = listed.out.strip().splitlines()[-2:]
    assert first.split()[0] == "1"
    assert second.split()[0] == "2"
    assert second.rstrip().endswith("each row")


@some("json", [(), ("--json",)], keep=1)
def test_a_model_of_no_rows_gets_a_warning(folder: Path, json: tuple[str, ...]) -> None:
    declared = (*DECLARED[:4], "--classes", "nein,ja")

    def warned() -> bool:
        said = dpforest(*trained("--db", "people.parquet", *declared, *json))
        assert said.code == 0
        return "may have seen no row" in said.err

    # by chance a noisy number of rows is above twice its noise in less than one of twenty
    assert any(warned() for _ in range(9))


def test_a_domain_file_and_the_variables_do_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPFOREST_DB", "part-1.csv")
    monkeypatch.setenv("DPFOREST_LEDGER", str(folder / "book"))
    Path("people.toml").write_text(
        'target = "ill"\n[[column]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 99\n'
        '[[column]]\nname = "ill"\nkind = "categorical"\ndomain = ["no", "yes"]\n'
    )
    assert dpforest("domain", "--check", "people.toml").code == 0
    assert dpforest(*trained("--domain", "people.toml", ledger=False)).code == 0
    assert dpforest("budget", "--json").facts["spent"] == 1


def test_each_file_of_a_glob_is_debited_and_capped(folder: Path) -> None:
    budget = ("--ledger", "book", "--json")
    set_cap = ("budget", "set", "--db", "part-2.csv", "--epsilon", "1.5", *budget)
    assert dpforest(*set_cap).facts["left"] == 1.5
    assert dpforest(*trained("--db", "part-*.csv", *DECLARED)).code == 0
    refused(dpforest(*trained("--db", "part-*.csv", *DECLARED)), '"part-2.csv"', "0.5")
    assert dpforest("budget", "--db", "part-1.csv", *budget).facts["spent"] == 1
    assert dpforest("budget", "--db", "part-2.csv", *budget).facts["left"] == 0.5


def test_a_dataset_binds_its_files_to_one_budget(folder: Path) -> None:
    for part in ("part-1.csv", "part-2.csv"):
        said = dpforest(*trained("--db", part, "--dataset", "people", *DECLARED))
        assert said.code == 0, said.err
        assert "A copy" not in said.err
    again = dpforest(*trained("--db", "part-1.csv", *DECLARED))
    assert 'Spent on file "part-1.csv" so far: ε = 3' in again.err, "the file stays in the dataset"
    shown = dpforest("budget", "--dataset", "people", "--ledger", "book", "--json").facts
    assert shown["table"] == "people"
    assert shown["spent"] == 3


@pytest.mark.more
def test_a_report_shows_the_budget_of_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair")
    assert dpforest(*trained("--db", "part-1.csv", *DECLARED)).code == 0
    report = ("report", "--model", "m.json", "--ledger", "book", "--replace", "--out", "m.html")
    monkeypatch.setenv("DPFOREST_DB", "part-1.csv")
    assert dpforest(*report).code == 0
    assert "On the <bdi>file part-1.csv</bdi> so far: ε = 1; there is no cap" in Path(
        "m.html"
    ).read_text(encoding="utf-8")
    assert dpforest("show", "--model", "m.json").code == 0


def test_dry_runs_and_domain_files_of_data_files_change_nothing(folder: Path) -> None:
    before = sorted(folder.iterdir())
    plan = ("train", *FIXED, "--db", "part-1.csv", *DECLARED, "--ledger", "book", "--dry-run")
    assert dpforest(*plan, "--json").facts["cost"] == 1
    skeleton = dpforest("domain", "--db", "people.parquet", "--target", "ill").text
    assert 'name = "age"' in skeleton
    untyped = dpforest("domain", "--db", "part-1.csv", "--target", "ill")
    assert "Bounds with a decimal point are for fractions." in untyped.err
    as_text = untyped.text
    age = as_text.partition('name = "age"\n')[2].partition("[[")[0]
    assert '# kind = "numeric"  # whole numbers\n# lower = 0' in age, (
        "the text in a CSV file may stand for numbers"
    )
    assert '# kind = "categorical"' in age
    assert sorted(folder.iterdir()) == before


SCORED = ("score", "--model", "m.json", "--into")


def test_files_are_scored_into_a_file_with_all_rows_and_columns(folder: Path) -> None:
    assert dpforest(*trained("--db", "people.parquet", *DECLARED)).code == 0
    odd = Path("odd.csv")
    odd.write_text("who,age,city,extra\n1,60.5,Bern,x\n2,old,Zug,\n3,,,7\n")
    found = {}
    for db, into in (
        ("people.parquet", "a.parquet"),
        ("part-*.csv", "b.csv"),
        ("part-*.csv", "c.parquet"),
        ("odd.csv", "odd.parquet"),
    ):
        columns = dpforest(*SCORED, into, "--db", db, "--json").facts["columns"]
        assert columns[-3:] == ["prediction", "p_no", "p_yes"]
        found[into] = duckdb.sql(f"FROM '{into}'").fetchall()
        assert duckdb.sql(f"FROM '{into}'").columns == columns
    assert [row[:4] for row in found["a.parquet"]] == duckdb.sql("FROM 'people.parquet'").fetchall()
    assert sorted(row[5:] for row in found["a.parquet"]) == sorted(r[5:] for r in found["b.csv"])
    assert sorted(map(str, found["c.parquet"])) == sorted(
        str((who, str(age), *rest)) for who, age, *rest in found["a.parquet"]
    )
    assert [row[:4] for row in found["odd.parquet"]] == [
        ("1", "60.5", "Bern", "x"),
        ("2", "old", "Zug", None),
        ("3", None, None, "7"),
    ]
    assert found["odd.parquet"][0][4] == "yes"
    no_name = dpforest(*SCORED[:-1], "--db", "odd.csv")
    assert "Name the new file with --into" in no_name.err, "no table is made of a file"
    refused(dpforest(*SCORED, "a.parquet", "--db", "odd.csv"), "already", "--replace")
    assert dpforest(*SCORED, "a.parquet", "--db", "odd.csv", "--replace").code == 0
    assert not [entry for entry in folder.iterdir() if entry.name.startswith(".")]


@some("db", ["part-*.csv", "people.parquet"], keep=1)
def test_files_are_evaluated_as_tables_are(db: str, folder: Path) -> None:
    named = ("--ledger", "book", "--dataset", "people", "--json")
    assert dpforest(*trained("--db", db, "--dataset", "people", *DECLARED)).code == 0
    evaluate = ("evaluate", "--db", db, "--model", "m.json", *named)
    facts = dpforest(*evaluate).facts
    assert facts["rows"] == 600
    assert facts["accuracy"] > 0.9
    assert not facts["private"]
    set_cap = ("budget", "set", "--dataset", "people", "--epsilon", "2", "--ledger", "book")
    assert dpforest(*set_cap).code == 0
    refused(dpforest(*evaluate), 'dataset "people" has a cap', "--epsilon")
    noisy = dpforest(*evaluate, "--epsilon", "0.5").facts
    assert noisy["private"]
    assert noisy["epsilon"] == 0.5
    refused(dpforest(*evaluate, "--epsilon", "1"), "only 0.5 of the cap", 'dataset "people"')
    Path("other.csv").write_text("age,city,ill\n1,Bern,no\n")
    other = ("evaluate", "--db", "other.csv", "--model", "m.json", "--ledger", "book")
    assert not dpforest(*other, "--json").facts["private"], "exact"
    assert dpforest("budget", "--dataset", "people", *named[:2], "--json").facts["spent"] == 1.5
    assert dpforest("budget", "--db", "other.csv", *named[:2], "--json").facts["spent"] == 0


def test_a_model_of_files_is_known_to_their_ledger(folder: Path) -> None:
    assert dpforest(*trained("--db", "part-1.csv", *DECLARED)).code == 0
    words = ("evaluate", "--db", "part-1.csv", "--epsilon", "1", "--model", "m.json", "--json")
    assert dpforest(*words, "--ledger", "book").facts["private"]
    refused(dpforest(*words), "--ledger")
    stranger = dpforest(*words, "--ledger", "another").facts
    assert not stranger["private"]
    assert "no private run" in stranger["reasons"][0]


def test_figures_of_the_rows_of_a_model_get_a_note(folder: Path) -> None:
    dpforest(*trained("--db", "part-1.csv", *DECLARED))
    asked = ("evaluate", "--model", "m.json", "--ledger", "book", "--db")
    assert "Note: The model was trained on these rows" in dpforest(*asked, "part-1.csv").err
    assert "was trained on" not in dpforest(*asked, "part-2.csv").err
    dpforest(*trained("--db", "part-1.csv", *DECLARED, "--recipe", "greedy-tree", out="other.json"))
    assert "was trained on" not in dpforest(*asked[:2], "other.json", *asked[3:], "part-2.csv").err
    named = ("--dataset", "parts")
    dpforest(*trained("--db", "part-1.csv", *DECLARED, *named, out="named.json"))
    part = dpforest(*asked[:2], "named.json", *asked[3:], "part-2.csv", *named).err
    assert "was trained on rows of this dataset. If these are the same, its figures" in part
    first = dpforest(*asked[:3], "--ledger", "new", "--db", "part-1.csv", "--epsilon", "1")
    assert "New ledger" in first.err


def test_a_new_dataset_is_announced_with_the_names_that_the_ledger_has(folder: Path) -> None:
    """A misspelt name must be seen: it has another budget."""
    words = trained("--db", "part-1.csv", *DECLARED)
    assert "New dataset" not in dpforest(*words, "--dataset", "people").err, "a new ledger is said"
    assert "New dataset" not in dpforest(*words, "--dataset", "PEOPLE").err
    said = dpforest("budget", "--dataset", "peple", "--ledger", "book")
    assert 'New dataset "peple"' in said.err
    assert '(it has "people")' in said.err


def test_a_model_file_may_begin_with_a_mark(folder: Path) -> None:
    dpforest(*trained("--db", "part-1.csv", *DECLARED))
    marked = Path("marked.json")
    marked.write_bytes(b"\xef\xbb\xbf" + Path("m.json").read_bytes())
    assert load_forest(marked).to_json() == load_forest("m.json").to_json()


@pytest.mark.more
def test_a_report_without_a_ledger_says_that_it_shows_no_budget(folder: Path) -> None:
    pytest.importorskip("altair")
    dpforest(*trained("--db", "part-1.csv", *DECLARED))
    said = dpforest("report", "--model", "m.json", "--out", "page.html")
    assert "shows no budget" in said.err
