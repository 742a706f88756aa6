"""Headers, marks, semicolons, line ends and bytes of CSV files that the command line reads."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pytest
from people_files import trained
from shell import dpforest, refused

from dpforest_duckdb import load_forest


@pytest.mark.parametrize("value", ["17", "1.5", "2024-01-31", "-3e2", "12/03/1957", "'3,5'"])
def test_a_row_in_the_place_of_a_header_is_refused_and_not_shown(folder: Path, value: str) -> None:
    Path("no.csv").write_text(f"Bern,{value},yes\nGenf,18,no\n".replace("'", '"'), encoding="utf-8")
    declared = ("--categories", "Born=a,b", "--target", "yess", "--classes", "no,yes")
    for words in (("domain", "--db", "no.csv"), trained("--db", "no.csv", *declared)):
        said = refused(dpforest(*words), "The first line of", "may be a row")
        assert "Bern" not in said
    assert dpforest("domain", "--db", "part-1.csv").code == 0


def test_a_column_that_is_called_as_a_number_can_be_declared(folder: Path) -> None:
    """A model that was trained on such columns also scores a file that has them."""
    Path("years.csv").write_text("2019,ill\n1,yes\n2,no\n", encoding="utf-8")
    declared = ("--numeric", "2019=0:9", "--classes", "no,yes", "--out", "y.json")
    said = dpforest(*trained("--db", "years.csv", *declared))
    assert said.code == 0, said.err
    Path("more.csv").write_text("2019,2020,ill\n1,1,yes\n", encoding="utf-8")
    said = dpforest("score", "--db", "more.csv", "--model", "y.json", "--into", "scored.csv")
    assert said.code == 0, said.err
    other = trained("--db", "more.csv", *declared[:4], "--out", "z.json")
    refused(dpforest(*other), "may be a row")


@pytest.mark.more
def test_semicolons_in_a_header_get_a_note_about_decimal_commas(folder: Path) -> None:
    Path("de.csv").write_text("id;born;weight;ill\n1;31.01.2024;3,5;yes\n", encoding="utf-8")
    Path("en.csv").write_text("id,born,weight,ill\n1,2024-01-31,3.5,yes\n", encoding="utf-8")
    dates, fractions = ("--numeric", "born=1900-01-01:2030-01-01"), ("--numeric", "weight=0.0:9.0")
    note = 'Note: The columns of "de" are separated by semicolons'
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


def test_the_domain_file_of_a_csv_file_offers_dates(folder: Path) -> None:
    assert '# lower = "2020-01-01"' in dpforest("domain", "--db", "part-1.csv").out


def test_the_conversion_of_decimal_commas_works_as_printed(folder: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "files.md").read_text(encoding="utf-8")
    Path("people.csv").write_text("id;born;weight;ill\n1;31.01.2024;3,5;yes\n", encoding="utf-8")
    exec(page.partition("<!-- decimal commas -->\n```python\n")[2].partition("```")[0], {})
    found = duckdb.sql("SELECT born::VARCHAR, weight FROM 'people.parquet'").fetchall()
    assert found == [("2024-01-31", 3.5)]


def test_records_that_are_not_utf8_are_left_out_whichever_columns_are_used(folder: Path) -> None:
    Path("latin.csv").write_bytes(b"a,w,r\n1,x,no\n9,\xe9,yes\n2,x,no\n8,\xe9,yes\n" * 1)
    words = ("--numeric", "a=0:9", "--target", "r", "--classes", "no,yes", "--epsilon", "100")
    shared = ("--ledger", "book", "--recipe", "dpdf", "--out", "m.json")
    note = 'Note: Rows of "latin" are left out if they have fewer fields than the header, or text'
    said = dpforest("train", "--db", "latin.csv", *words, *shared)
    assert said.code == 0
    assert note in said.err
    (leaf,) = load_forest("m.json").trees
    assert leaf.counts is not None
    assert leaf.counts.sum() == 2
    said = dpforest("evaluate", "--db", "latin.csv", "--model", "m.json", "--ledger", "book")
    assert said.out.split()[:2] == ["rows", "2"]
    assert note in said.err
    into = ("--model", "m.json", "--into", "scored.csv")
    scored = dpforest("score", "--db", "latin.csv", *into)
    assert scored.code == 0
    assert scored.err.count(note) == 1
    assert len(Path("scored.csv").read_text().splitlines()) == 3


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
