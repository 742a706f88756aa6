"""Data files on the command line: domain by options, budgets by path and by name."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import numpy as np
import pytest
from shell import SECRET, dpforest, refused
from variants import some

from dpforest_duckdb import load_forest
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.model.doubts import doubts
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.tree import Guarantee, Tree

DECLARED = ("--numeric", "age=0:99", "--categories", "city=Bern,Genf", "--classes", "no,yes")
FIXED = ("--target", "ill", "--epsilon", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two parts of a table as CSV and the whole as Parquet."""
    monkeypatch.chdir(tmp_path)
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE people AS SELECT '{SECRET}-' || i AS who, i % 100 AS age, "
        "['Bern', 'Genf'][i % 2 + 1] AS city, ['no', 'yes'][1 + (i % 100 > 50)::INTEGER] AS ill "
        "FROM range(600) r(i)"
    )
    con.sql("FROM people LIMIT 300").write_csv("part-1.csv")
    con.sql("FROM people OFFSET 300").write_csv("part-2.csv")
    con.table("people").write_parquet("people.parquet")
    Path("loop.csv").symlink_to("loop.csv")
    return tmp_path


def trained(*words: str, ledger: bool = True, out: str = "m.json") -> tuple[object, ...]:
    kept = ("--ledger", "book") if ledger else ()
    return ("train", *FIXED, *kept, "--out", out, "--replace", *words)


@pytest.mark.parametrize("db", ["part-1.csv", "part-*.csv", "people.parquet"])
def test_files_are_trained_on_with_a_domain_by_options(db: str, folder: Path) -> None:
    said = dpforest(*trained("--db", db, *DECLARED))
    assert said.code == 0, said.err
    assert "from the options" in said.err
    assert "A copy of these files" in said.err
    assert 'Columns not used, because they are not declared: "who".' in said.err
    forest = load_forest("m.json")
    assert forest.private
    assert [attribute.name for attribute in forest.domain.attributes] == ["age", "city"]


def test_a_row_in_the_place_of_a_header_gets_a_note(folder: Path) -> None:
    Path("no.csv").write_text("17,Bern,yes\n18,Genf,no\n", encoding="utf-8")
    for file, noted in (("no.csv", True), ("part-1.csv", False), ("people.parquet", False)):
        said = dpforest("domain", "--db", file)
        assert said.code == 0, said.err
        assert ('"17" looks like a value' in said.err) is noted


@pytest.mark.more
def test_semicolons_in_a_header_get_a_note_about_decimal_commas(folder: Path) -> None:
    Path("de.csv").write_text("id;born;weight;ill\n1;31.01.2024;3,5;yes\n", encoding="utf-8")
    Path("en.csv").write_text("id,born,weight,ill\n1,2024-01-31,3.5,yes\n", encoding="utf-8")
    dates, fractions = ("--numeric", "born=1900-01-01:2030-01-01"), ("--numeric", "weight=0.0:9.0")
    note = 'Note: Semicolons separate the columns of "de"'
    for file, declared, noted in (
        ("de.csv", dates, True),
        ("de.csv", fractions, True),
        ("de.csv", ("--categories", "born=a,b"), False),
        ("en.csv", fractions, False),
    ):
        said = dpforest(*trained("--db", file, *declared, "--classes", "no,yes", "--dry-run"))
        assert said.code == 0, said.err
        assert (note in said.err) is noted
    domain = (
        'target = "ill"\n[[column]]\nname = "ill"\nkind = "categorical"\ndomain = ["no", "yes"]\n'
        '[[column]]\nname = "weight"\nkind = "numeric"\nlower = 0.0\nupper = 9.0\n'
    )
    Path("d.toml").write_text(domain, encoding="utf-8")
    assert note in dpforest("domain", "--db", "de.csv", "--check", "d.toml").out
    model = ("--model", "m.json", "--ledger", "book")
    assert dpforest(*trained("--db", "en.csv", "--domain", "d.toml")).code == 0
    for file, noted in (("de.csv", True), ("en.csv", False)):
        for asked in (("evaluate", *model), ("score", *model[:2], "--into", f"{file[:2]}.parquet")):
            said = dpforest(*asked, "--db", file)
            assert said.code == 0, said.err
            assert (note in said.err) is noted


def test_a_file_that_is_named_as_a_table_gets_a_hint(folder: Path) -> None:
    duckdb.connect("d.duckdb").close()
    words = ("train", *FIXED, "--db", "d.duckdb", "--table")
    refused(dpforest(*words, "people.parquet"), "but a file", "--db alone")
    said = refused(dpforest(*words, "p" * 999), "There is no table")
    assert "but a file" not in said


def test_the_domain_file_of_a_csv_file_offers_dates(folder: Path) -> None:
    assert '# lower = "2020-01-01"' in dpforest("domain", "--db", "part-1.csv").out


def test_the_conversion_of_decimal_commas_works_as_printed(folder: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "files.md").read_text(encoding="utf-8")
    Path("people.csv").write_text("id;born;weight;ill\n1;31.01.2024;3,5;yes\n", encoding="utf-8")
    exec(page.partition("<!-- decimal commas -->\n```python\n")[2].partition("```")[0], {})
    found = duckdb.sql("SELECT born::VARCHAR, weight FROM 'people.parquet'").fetchall()
    assert found == [("2024-01-31", 3.5)]


def test_a_new_ledger_of_files_is_announced(folder: Path) -> None:
    """It knows no cap of another ledger, so a misspelt name must be seen."""
    assert "New ledger" in dpforest(*trained("--db", "part-1.csv", *DECLARED)).err
    assert "New ledger" not in dpforest(*trained("--db", "part-1.csv", *DECLARED)).err
    said = dpforest("budget", "--db", "part-1.csv", "--ledger", "bok")
    assert said.code == 0
    assert "New ledger" in said.err
    assert not Path("bok").exists()
    listed = dpforest("budget", "--db", "part-1.csv", "--ledger", "book")
    assert "New ledger" not in listed.err
    first, second = listed.out.strip().splitlines()[-2:]
    assert first.split()[0] == "1"
    assert second.split()[0] == "3"  # between them is the end of the first run
    assert second.rstrip().endswith("each row")


@some("json", [(), ("--json",)], keep=1)
def test_a_model_of_no_rows_gets_a_warning(folder: Path, json: tuple[str, ...]) -> None:
    declared = (*DECLARED[:4], "--classes", "nein,ja")
    warned = [dpforest(*trained("--db", "people.parquet", *declared, *json)) for _ in range(9)]
    assert all(said.code == 0 for said in warned)
    # by chance a noisy number of rows is above twice its noise in less than one of twenty
    assert any("may have seen no row" in said.err for said in warned)


@pytest.mark.parametrize(("rows", "warned"), [(0, True), (140, True), (150, False), (600, False)])
def test_noisy_rows_are_compared_with_the_noise_of_all_trees(rows: int, warned: bool) -> None:
    """The noise of the mean is 73, of one tree with 100 in each of two counts, and one with 60."""
    domain = Domain((Attribute("a", "categorical", ("x",)),), "k", ("no", "yes"))

    def tree(noise: float, first: int) -> Tree:
        leaf = {name: np.full(1, -1) for name in ("attribute", "cell", "first")}
        counts, votes = np.array([[first, rows - first]]), np.zeros((1, 2), dtype=np.int64)
        return Tree(kind=np.zeros(1), **leaf, counts=counts, votes=votes, noise=np.array([noise]))

    trees = [tree(np.nan, 0), tree(100.0, rows), tree(60.0, 0)]
    forest = Forest("m", "auto", Guarantee(epsilon="1"), domain, tuple(trees))
    assert [("may have seen no row" in found) for found in doubts(forest)] == [True] * warned


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
    as_text = dpforest("domain", "--db", "part-1.csv", "--target", "ill").text
    age = as_text.partition('name = "age"\n')[2].partition("[[")[0]
    assert '# kind = "numeric"\n# lower = 0' in age, "the text in a CSV file may stand for numbers"
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
    refused(dpforest(*SCORED, "a.parquet", "--db", "odd.csv"), "already", "--replace")
    assert dpforest(*SCORED, "a.parquet", "--db", "odd.csv", "--replace").code == 0
    assert not [entry for entry in folder.iterdir() if entry.name.startswith(".")]


@some(
    ("words", "sentence", "code"),
    [
        (("--into", "s.parquet", "--model", "m"), ".json file with --model", 2),
        (("--into", "scored"), "--into FILE.parquet", 2),
        (("--into", "no/s.csv"), "--into", 1),
        (("--into", "part-1.csv", "--replace"), "--into names", 2),
        (("--into", "s.csv", "--table", "t"), "--table goes", 2),
        (("--into", "s.csv", "--db", "none-*.csv"), "no data file", 1),
        (("--into", "s.csv", "--db", "narrow.csv"), 'no column "city"', 1),
        (("--into", "s.csv", "--db", "taken.csv"), "--prefix", 1),
    ],
    keep=3,
)
def test_files_that_cannot_be_scored_are_refused(
    words: tuple[str, ...], sentence: str, code: int, folder: Path
) -> None:
    assert dpforest(*trained("--db", "part-1.csv", *DECLARED)).code == 0
    Path("narrow.csv").write_text("age\n1\n")
    Path("taken.csv").write_text("age,city,p_no\n1,Bern,2\n")
    before = sorted(folder.iterdir())
    said = dpforest("score", "--db", "part-1.csv", "--model", "m.json", *words)
    assert sentence in refused(said, code=code)
    assert sorted(folder.iterdir()) == before


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


BAD: dict[str, tuple[tuple[str, ...], str, int]] = {
    "no ledger": (("--db", "part-1.csv", *DECLARED), "--ledger", 1),
    "a glob that matches nothing": (("--db", "none-*.csv", *DECLARED), "no data file", 1),
    "a missing file": (("--db", "none.parquet", *DECLARED), "no data file", 1),
    "a glob of two kinds": (("--db", "p*", *DECLARED), "CSV files alone", 1),
    "a table too": (("--db", "part-1.csv", "--table", "t", *DECLARED), "--table goes", 2),
    "a name": (("--db", "part-1.csv", "--name", "m", *DECLARED), "--out", 2),
    "two models": (
        ("--db", "part-1.csv", "--recipe", "auto", "--recipe", "dpdf", *DECLARED),
        "train once for each",
        2,
    ),
    "no domain": (("--db", "part-1.csv"), "pass --numeric, --categories and --classes", 2),
    "a folder": (("--db", ".", *DECLARED), "is a folder", 1),
    "a file of another kind": (("--db", "people.xlsx", *DECLARED), "end in .parquet", 2),
    "a link to itself": (("--db", "loop.csv", *DECLARED), "no data file", 1),
    "a number and a date": (
        ("--db", "part-1.csv", *DECLARED, "--numeric", "who=0:2020-01-01"),
        "all dates",
        1,
    ),
    "an empty category": (("--db", "part-1.csv", *DECLARED, "--categories", "who=a,"), "empty", 2),
    "empty classes": (("--db", "part-1.csv", *DECLARED[:4], "--classes", ""), "--classes A,B", 2),
    "both domains": (
        ("--db", "part-1.csv", "--domain", "x.toml", *DECLARED),
        "one or the other",
        2,
    ),
    "no classes": (("--db", "part-1.csv", "--numeric", "age=0:99"), "--classes", 2),
    "one class": (("--db", "part-1.csv", *DECLARED[:4], "--classes", "no"), "two classes", 1),
    "no attribute": (("--db", "part-1.csv", "--classes", "no,yes"), "NAME=LOW:HIGH", 2),
    "a missing column": (
        ("--db", "part-1.csv", *DECLARED, "--numeric", "size=0:9"),
        'no column "size"',
        1,
    ),
    "a column twice": (("--db", "part-1.csv", *DECLARED, "--numeric", "AGE=0:9"), "twice", 2),
    "the target as an attribute": (
        ("--db", "part-1.csv", *DECLARED, "--categories", "ill=no,yes,perhaps"),
        "leave it out",
        2,
    ),
    "the target as a number": (
        ("--db", "part-1.csv", *DECLARED, "--numeric", "ill=0:1"),
        "leave it out",
        2,
    ),
    "no bounds": (("--db", "part-1.csv", *DECLARED, "--numeric", "size"), "NAME=LOW:HIGH", 2),
    "one bound": (("--db", "part-1.csv", *DECLARED, "--numeric", "size=4"), "two bounds", 2),
    "no name": (("--db", "part-1.csv", *DECLARED, "--numeric", "=0:9"), "NAME=LOW:HIGH", 2),
    "text as bounds": (("--db", "part-1.csv", *DECLARED, "--numeric", "size=a:b"), "no number", 2),
    "infinite bounds": (("--db", "part-1.csv", *DECLARED, "--numeric", "size=0:inf"), "finite", 1),
    "turned bounds": (("--db", "part-1.csv", *DECLARED, "--numeric", "size=9:0"), "less than", 1),
    "no categories": (("--db", "part-1.csv", *DECLARED, "--categories", "who="), "NAME=A,B", 2),
    "a category twice": (("--db", "part-1.csv", *DECLARED, "--categories", "who=a,a"), "twice", 1),
    "an open quote": (("--db", "part-1.csv", *DECLARED, "--categories", 'who="a'), "quote", 2),
    "a bad unit": (("--db", "part-1.csv", "--privacy-unit", "nobody", *DECLARED), "nobody", 1),
    "an empty name": (("--db", "part-1.csv", "--dataset", " ", *DECLARED), "--dataset", 2),
    "a dataset of a database": (
        ("--db", "d.duckdb", "--table", "t", "--dataset", "d"),
        "d.duckdb",
        1,
    ),
}


@some("name", BAD, keep=12)
def test_bad_options_for_files_are_refused_before_the_debit(name: str, folder: Path) -> None:
    words, sentence, code = BAD[name]
    said = dpforest(*trained(*words, ledger=name != "no ledger"))
    text = refused(said, code=code)
    assert sentence in text
    assert not Path("book").exists()
    assert not Path("m.json").exists()


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (("show",), "--dataset", 2),
        (("show", "--dataset", "d"), "--ledger", 2),
        (("move", "--dataset", "d", "--table", "t", "--to", "u"), "database", 2),
        (("set", "--db", "part-1.csv", "--ledger", "book"), "--epsilon", 2),
        (("set", "--db", "part-1.csv", "--epsilon", "1"), "--ledger", 1),
        (("set", "--db", "x.csv", "--epsilon", "1", "--ledger", "book"), "no data file", 1),
    ],
)
def test_budgets_of_nothing_are_refused(
    words: tuple[str, ...], sentence: str, code: int, folder: Path
) -> None:
    assert sentence in refused(dpforest("budget", *words), code=code)
    assert not Path("book").exists()


@pytest.mark.parametrize(
    ("types", "domain", "sentence", "code"),
    [
        ("ENUM('no', 'yes')", ["No", "Yes"], 'did you mean "no"', 1),
        ("ENUM('no', 'yes')", ["never", "always"], "No class of the domain is a label", 1),
        ("ENUM('no', 'yes', 'maybe')", ["no", "yes"], 'lacks "maybe"', 0),
        ("ENUM('no', 'yes')", ["no", "yes", "perhaps"], '"perhaps", which its ENUM', 0),
    ],
)
def test_labels_are_compared_before_the_debit(
    types: str, domain: list[str], sentence: str, code: int, folder: Path
) -> None:
    with duckdb.connect("d.duckdb") as con:
        con.execute(f"CREATE TABLE t (age INTEGER, ill {types})")
    words = (
        "--db",
        "d.duckdb",
        "--table",
        "t",
        "--numeric",
        "age=0:9",
        "--classes",
        ",".join(domain),
    )
    said = dpforest("train", *FIXED, *words)
    assert said.code == code
    assert sentence in said.err
    assert Path("d.duckdb.ledger").exists() == (code == 0)


def test_dates_for_numbers_misspelt_keys_and_large_budgets_get_a_sentence(folder: Path) -> None:
    with duckdb.connect("d.duckdb") as con:
        con.execute("CREATE TABLE t (age INTEGER, ill BOOLEAN)")
    table = ("--db", "d.duckdb", "--table", "t", "--target", "ill")
    dates = ("--numeric", "age=2000-01-01:2009-12-31", "--classes", "true,false")
    refused(dpforest("train", *table, *dates, "--epsilon", "1"), "bounds are dates")
    with duckdb.connect("d.duckdb") as con:
        con.execute("CREATE TABLE days (day DATE, ill BOOLEAN)")
    numbers = ("--table", "days", "--numeric", "day=2010:2020", "--classes", "true,false")
    days = dpforest("train", *table[:2], *numbers, "--target", "ill", "--epsilon", "1")
    refused(days, "bounds are numbers: write dates")
    Path("d.toml").write_text(
        'target = "ill"\n[[column]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 9\n'
        'nulable = false\n[[column]]\nname = "ill"\nkind = "categorical"\ndomain = [true, false]\n'
    )
    words = ("train", *table, "--domain", "d.toml", "--epsilon")
    refused(dpforest(*words, "1"), '"nulable": did you mean nullable?')
    refused(dpforest("domain", *table[:4], "--check", "d.toml"), "did you mean nullable?")
    right = Path("d.toml").read_text().replace("nulable", "nullable")
    Path("unit.toml").write_text(f'privacy_unit = "nobody"\n{right}')
    refused(dpforest("domain", *table[:4], "--check", "unit.toml"), '"nobody", the privacy unit')
    assert not Path("d.duckdb.ledger").exists()
    Path("d.toml").write_text(Path("d.toml").read_text().replace("nulable", "remarks"))
    said = dpforest(*words, "20")
    assert said.code == 0, said.err
    assert "Note: ε = 20 is above 10" in said.err


def test_figures_of_the_rows_of_a_model_get_a_note(folder: Path) -> None:
    dpforest(*trained("--db", "part-1.csv", *DECLARED))
    asked = ("evaluate", "--model", "m.json", "--ledger", "book", "--db")
    assert "the model was trained on these rows" in dpforest(*asked, "part-1.csv").err
    assert "was trained on" not in dpforest(*asked, "part-2.csv").err
    dpforest(*trained("--db", "part-1.csv", *DECLARED, "--recipe", "greedy-tree", out="other.json"))
    assert "was trained on" not in dpforest(*asked[:2], "other.json", *asked[3:], "part-2.csv").err
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


def _of_values(listed: int, missing: int) -> Forest:
    """A forest of one tree that divides 1,000 rows by a category and NULL; no noise to speak of."""
    attribute = Attribute("a", "categorical", ("x", "y"))
    counts = np.array([[listed + missing, 0], [listed, 0], [0, 0], [0, 0], [missing, 0]])
    tree = Tree(
        kind=np.array([1, 0, 0, 0, 0]),
        attribute=np.array([0, -1, -1, -1, -1]),
        cell=np.full(5, -1),
        first=np.array([1, -1, -1, -1, -1]),
        counts=counts,
        votes=np.zeros((5, 2), dtype=np.int64),
        noise=np.full(5, 1.0),
    )
    domain = Domain((attribute,), "k", ("no", "yes"))
    return Forest("m", "auto", Guarantee(epsilon="1"), domain, (tree,))


@pytest.mark.parametrize(("listed", "warned"), [(0, True), (40, True), (60, False), (1000, False)])
def test_values_that_the_domain_does_not_list_get_a_warning(listed: int, warned: bool) -> None:
    found = doubts(_of_values(listed, 1000 - listed))
    assert [('"a" is NULL or outside' in each) for each in found] == [True] * warned


def test_records_that_are_not_utf8_are_left_out_whichever_columns_are_used(folder: Path) -> None:
    Path("latin.csv").write_bytes(b"a,w,r\n1,x,no\n9,\xe9,yes\n2,x,no\n8,\xe9,yes\n" * 1)
    words = ("--numeric", "a=0:9", "--target", "r", "--classes", "no,yes", "--epsilon", "100")
    shared = ("--ledger", "book", "--recipe", "dpdf", "--out", "m.json")
    assert dpforest("train", "--db", "latin.csv", *words, *shared).code == 0
    (leaf,) = load_forest("m.json").trees
    assert leaf.counts is not None
    assert leaf.counts.sum() == 2
    said = dpforest("evaluate", "--db", "latin.csv", "--model", "m.json", "--ledger", "book")
    assert said.out.split()[:2] == ["rows", "2"]
    into = ("--model", "m.json", "--into", "scored.csv")
    assert dpforest("score", "--db", "latin.csv", *into).code == 0
    assert len(Path("scored.csv").read_text().splitlines()) == 3


def test_an_empty_privacy_unit_is_no_column(folder: Path) -> None:
    words = trained("--db", "part-1.csv", *DECLARED, "--privacy-unit", "")
    refused(dpforest(*words), "--privacy-unit is empty", code=2)


@pytest.mark.parametrize("extra", [None, [30, "F\r", "line\n", "yes"], [30, "F", "ok", "yes\r"]])
def test_no_carriage_return_in_a_value_ends_a_line(
    folder: Path, extra: list[object] | None
) -> None:
    """Python writes such files on Windows; DuckDB would take the rest of the file for one value."""
    rows: list[list[object]] = [[i % 100, "F", "ok", "yes" if i % 3 else "no"] for i in range(400)]
    rows[9:9] = [extra] if extra else []
    with open("windows.csv", "w", newline="\r\n") as file:
        csv.writer(file, lineterminator="\n").writerows([["age", "sex", "note", "ill"], *rows])
    words = ("--numeric", "age=0:99", "--classes", "no,yes", "--recipe", "dpdf")
    assert dpforest(*trained("--db", "windows.csv", *words)).code == 0
    said = dpforest("evaluate", "--db", "windows.csv", "--model", "m.json", "--ledger", "book")
    assert said.out.split()[1] in ("400", "401"), "one record has one row at most"


@pytest.mark.parametrize(("value", "rows"), [("ok\r30,F,ok,yes", 402), ('"ok\r30,F,ok,yes"', 401)])
def test_a_carriage_return_ends_a_record_outside_of_quotes(
    folder: Path, value: str, rows: int
) -> None:
    lines = [
        "age,sex,note,ill",
        *[f"{i % 100},F,ok,{'yes' if i % 3 else 'no'}" for i in range(400)],
    ]
    lines.insert(9, f"30,F,{value},yes" if value.startswith('"') else f"30,F,{value}")
    Path("odd.csv").write_bytes("\n".join([*lines, ""]).encode())
    words = ("--numeric", "age=0:99", "--classes", "no,yes", "--recipe", "dpdf")
    assert dpforest(*trained("--db", "odd.csv", *words)).code == 0
    said = dpforest("evaluate", "--db", "odd.csv", "--model", "m.json", "--ledger", "book")
    assert said.out.split()[1] in (str(rows), str(rows - 1))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"age,ill\r30,no\r40,yes\r", "carriage return alone"),
        (b'age,"ill\n30,no\n40",yes\n', "no header line"),
        (b"age,ill\xff\n30,no\n", "not UTF-8"),
    ],
)
def test_a_header_is_judged_without_the_rows(folder: Path, content: bytes, words: str) -> None:
    Path("odd.csv").write_bytes(content)
    declared = ("--numeric", "age=0:99", "--classes", "no,yes")
    refused(dpforest(*trained("--db", "odd.csv", *declared)), words)


@pytest.mark.parametrize("row", [b"\xff,no\n", b"30;;;;;,no\n"])
def test_the_first_row_after_a_mark_and_a_header_does_not_decide(folder: Path, row: bytes) -> None:
    Path("marked.csv").write_bytes(b"\xef\xbb\xbfage,ill\n" + row + b"30,yes\n")
    declared = ("--numeric", "age=0:99", "--classes", "no,yes")
    assert dpforest(*trained("--db", "marked.csv", *declared)).code == 0


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
