"""Statements in other statements: indented, unless that could change a name or a literal."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import numpy as np
import pytest
from models import forest_of, one_split
from test_sql_snapshots import FOLDERS, SNAPSHOTS

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.ledger.accounts import NoAccount
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.sql import Sql, bracketed, indent
from dpforest_duckdb.training.evaluate import evaluate_table

TEXTS = ("a\nb", "a\n  b", "it's\na", 'one"\ntwo', "three\\\n", "'\n\"", "-- no\n'comment")


def test_a_nested_statement_is_indented_and_has_no_header() -> None:
    statement = Sql("-- Read.\n-- inputs: it's one\n\n-- of a\nSELECT\n  1 -- don't\nFROM a\n")
    assert bracketed(statement) == "(\n  -- of a\n  SELECT\n    1 -- don't\n  FROM a\n)"
    assert indent(Sql("one"), 4) == "one"


@pytest.mark.parametrize("text", TEXTS)
def test_literals_and_names_of_several_lines_stay_as_they_are(text: str) -> None:
    dialect, con = DuckDBEngine.dialect, duckdb.connect()
    for before, after in itertools.product(("", "'it''s'", '"it\'s"', "'\"'"), repeat=2):
        value, name = dialect.text(text), dialect.ident(text)
        row = f'SELECT 1 AS {name}, 2 AS "it\'s", {value} AS "value"'
        read = f"{value}, {before or 1},\n{value} || {name},\n{after or 1}, {name}"
        statement = Sql(f"SELECT {read} FROM ({row})\n")
        found = con.sql(f"SELECT * FROM {bracketed(statement)}")
        assert found.fetchall() == con.sql(statement).fetchall()
        assert text in found.columns


@pytest.mark.parametrize("text", [r"'it\'s', 'a" + "\n'", r"'\\', " + "`a\nb`", '"a\n"'])
def test_what_is_quoted_as_in_spark_stays_as_it_is(text: str) -> None:
    assert text in bracketed(Sql(f"SELECT\n  {text}\nFROM a\n"))


def test_categories_and_names_of_several_lines_are_read_as_they_are() -> None:
    """In the two nested statements that hold them: scoring, and a search for numbers' bins."""
    con, name = duckdb.connect(), "col\n's \"name"
    edges = tuple(float(edge) for edge in range(20))
    attributes = (
        Attribute(name, "categorical", TEXTS, nullable=False),
        Attribute("size\n'", "numeric", lower=0, upper=20, edges=edges),
    )
    domain = Domain(attributes, "target", ("no\n", "yes\n")).bind(
        {name: VARCHAR, "size\n'": DOUBLE, "target": VARCHAR}
    )
    con.execute('CREATE TABLE t ("col\n\'s ""name" VARCHAR, "size\n\'" DOUBLE, target VARCHAR)')
    rows = [
        (text, number + 0.5, ("no\n", "yes\n")[number % 2]) for number, text in enumerate(TEXTS)
    ]
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    votes = [((1, 0), (0, 1))[cell % 2] for cell in range(domain.cells[0])]
    engine = DuckDBEngine(con)
    forest = forest_of(domain, one_split(domain, 0, votes))
    assert evaluate_table(engine, forest, engine.table("t"), NoAccount()).accuracy == 1
    with engine.snapshot(engine.table("t")) as snapshot:
        coded = snapshot.encode(Coding(domain, ROW, trees=1, sample="all", salt=1))
        by_text, by_size = (counts[0].sum(axis=1) for counts in coded.count_classes(0, 1))
    assert by_text.tolist()[: len(TEXTS)] == [1] * len(TEXTS)
    assert np.flatnonzero(by_size).tolist() == list(range(1, len(TEXTS) + 1))


@pytest.mark.parametrize(
    "file", [f for folder in FOLDERS for f in sorted((SNAPSHOTS / folder).glob("*.sql"))], ids=str
)
def test_what_is_in_brackets_is_indented(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.endswith("("):
            left = len(line) - len(line.lstrip())
            within = itertools.takewhile(
                lambda each, left=left: not each.startswith(" " * left + ")"), lines[number + 1 :]
            )
            assert all(each.startswith(" " * (left + 2)) for each in within), line
