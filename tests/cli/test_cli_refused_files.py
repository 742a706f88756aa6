"""Bad options for data files, and domains that do not fit them, are refused before the debit."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from models import forest_of, log_odds, one_split, two_attributes
from people_files import DECLARED, FIXED, trained
from shell import dpforest, refused
from variants import some


def test_a_file_that_is_named_as_a_table_gets_a_hint(folder: Path) -> None:
    duckdb.connect("d.duckdb").close()
    words = ("train", *FIXED, "--db", "d.duckdb", "--table")
    refused(dpforest(*words, "people.parquet"), "but a file", "--db alone")
    said = refused(dpforest(*words, "p" * 999), "There is no table")
    assert "but a file" not in said


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
    "a folder of CSV files": (("--db", "claims", *DECLARED), "such as 'claims/**/*.csv'", 1),
    "the name of a folder": (
        ("--db", "claims/*/*.csv", *DECLARED, "--numeric", "year=2000:2030"),
        "The names of folders are not read as columns",
        1,
    ),
    "a column that is not declared": (
        ("--db", "part-1.csv", *DECLARED, "--columns", "ill,who"),
        "declare its values",
        1,
    ),
    "an excluded column that is not declared": (
        ("--db", "part-1.csv", *DECLARED, "--exclude", "who"),
        "a column that is not declared is not used",
        1,
    ),
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
    "an equals sign": (("--db", "part-1.csv", *DECLARED, "--numeric", "k=v=0:9"), "quotes", 2),
    "text as bounds": (("--db", "part-1.csv", *DECLARED, "--numeric", "size=a:b"), "no number", 2),
    "bounds in other digits": (
        ("--db", "part-1.csv", *DECLARED, "--numeric", "size=0:٩٩"),
        "no number",
        2,
    ),
    "underscores in bounds": (
        ("--db", "part-1.csv", *DECLARED, "--numeric", "size=0:1_000"),
        "no number",
        2,
    ),
    "a quote that is not closed": (
        ("--db", "part-1.csv", *DECLARED, "--columns", 'age,"b', "--columns", "c"),
        "check its quotes",
        2,
    ),
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
    claims = Path("claims/year=2024")
    claims.mkdir(parents=True)
    (claims / "a.csv").write_bytes(Path("part-1.csv").read_bytes())
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
        ("ENUM('no', 'yes')", ["No", "Yes"], "a label of nearly this spelling", 1),
        ("ENUM('no', 'yes', 'maybe')", ["no", "yes", "mabye"], "of nearly this spelling", 1),
        ("ENUM('no', 'yes')", ["never", "always"], "No class of the domain is a label", 1),
        ("ENUM('no', 'yes', 'maybe')", ["no", "yes"], "does not list all labels", 0),
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
    assert "maybe" not in said.err, "a label that only the ENUM has may come from the rows"
    assert Path("d.duckdb.ledger").exists() == (code == 0)


def test_every_column_whose_domain_cannot_be_right_gets_a_sentence(folder: Path) -> None:
    with duckdb.connect("d.duckdb") as con:
        con.execute(
            "CREATE TABLE t (age INTEGER, day DATE, city ENUM ('Bern', 'Genf'), ill BOOLEAN)"
        )
    words = ("--numeric", "age=2000-01-01:2009-12-31", "--numeric", "day=1:9")
    cities = ("--categories", "city=Bern,genf", "--classes", "true,false")
    table = ("--db", "d.duckdb", "--table", "t", "--target", "ill", "--epsilon", "1")
    said = refused(dpforest("train", *table, *words, *cities))
    for column in ("age", "day", "city"):
        assert said.count(f'"{column}"') == 1


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


def test_an_empty_privacy_unit_is_no_column(folder: Path) -> None:
    words = trained("--db", "part-1.csv", *DECLARED, "--privacy-unit", "")
    refused(dpforest(*words), "--privacy-unit is empty", code=2)


def test_a_column_that_only_the_names_of_folders_have_is_explained(folder: Path) -> None:
    """By every verb that reads files, for every kind of column; and nothing is debited."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS FROM read_csv('part-1.csv', all_varchar = true)")
        con.execute("ALTER TABLE t ALTER age TYPE INTEGER")
        con.execute("ALTER TABLE t ADD COLUMN Year INTEGER DEFAULT 2024")
        con.execute("COPY t TO 'all.parquet'")
        con.execute("COPY t TO 'years' (FORMAT parquet, PARTITION_BY (Year))")
    files = ("--db", "years/*/*.parquet")
    assert (
        dpforest(*trained("--db", "all.parquet", *DECLARED, "--numeric", "year=0:9999")).code == 0
    )
    before = Path("book").read_bytes()
    Path("year.toml").write_text(
        'target = "ill"\n[[column]]\nname = "ill"\nkind = "categorical"\ndomain = ["no", "yes"]\n'
        '[[column]]\nname = "year"\nkind = "numeric"\nlower = 0\nupper = 9999\n'
    )
    why = ('not read as columns, so there is no column "', "year", "WRITE_PARTITION_COLUMNS")
    target = ("--target", "year", "--classes", "2024,2025", "--numeric", "age=0:99")
    for words in (
        trained(*files, *DECLARED, "--numeric", "year=0:9999"),
        trained(*files, *DECLARED, "--privacy-unit", "year"),
        ("train", *files, *target, "--epsilon", "1", "--ledger", "book", "--out", "n.json"),
        ("domain", *files, "--target", "year"),
        ("domain", *files, "--check", "year.toml"),
    ):
        refused(dpforest(*words), *why)
    assert Path("book").read_bytes() == before
    assert dpforest(*trained(*files, *DECLARED)).code == 0, "folders alone are no reason"


def test_a_model_says_which_of_its_columns_only_folders_have(folder: Path) -> None:
    domain = two_attributes(("colour", "size"))
    forest_of(domain, one_split(domain, 0, log_odds([0.0], [0.0], [1.0], [0.0]))).save("c.json")
    for colour in ("red", "blue"):
        Path(f"colour={colour}").mkdir()
        Path(f"colour={colour}/rows.csv").write_text("size,target\nsmall,no\n")
    words = ("--db", "colour=*/rows.csv", "--model", "c.json")
    for verb in (("score", "--into", "s.csv"), ("evaluate", "--ledger", "book")):
        refused(dpforest(*verb, *words), "names of folders are not read", '"colour"')
