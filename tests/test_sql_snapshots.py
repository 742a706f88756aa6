"""One rendered statement per template, kept for people to read and compared here.

Those of Spark are rendered without Spark. `python tests/test_sql_snapshots.py --write` writes all
of them after a change that was meant.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest
from engine_conformance import COLUMNS, DOMAIN, ROWS

import dpforest_duckdb.sql
from dpforest_duckdb import demo
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Coding, Gradients, Splits
from dpforest_duckdb.engine.coded_rows import class_counts, encoding, gradients, stored_rows
from dpforest_duckdb.engine.coded_rows import rows as coded_rows
from dpforest_duckdb.engine.connection.connect import MEMORY, open_database
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.engine.sources import memory_database
from dpforest_duckdb.engine.sources.files import opened_files
from dpforest_duckdb.engine.sources.frames import Frame
from dpforest_duckdb.engine.sources.memory_database import (
    GivenDatabase,
    MemoryDatabase,
    NewDatabase,
)
from dpforest_duckdb.engine.spark import added_votes as spark_votes
from dpforest_duckdb.engine.spark import outcomes as spark_outcomes
from dpforest_duckdb.engine.spark import rows as spark_rows
from dpforest_duckdb.engine.spark import snapshot as spark_snapshot
from dpforest_duckdb.engine.tables import outcomes, snapshot
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.ledger.accounts import NoAccount
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.scoring import score_sql
from dpforest_duckdb.scoring.codes import SparkCodes
from dpforest_duckdb.sklearn import declared
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.training.evaluate import evaluate_table
from dpforest_duckdb.tree import EQUALS, MULTIWAY, THRESHOLD, Tree

SNAPSHOTS = Path(__file__).parent / "snapshots"
TEMPLATES = Path(dpforest_duckdb.sql.__file__ or "").parent
FOLDERS = {"steps": TEMPLATES, "spark": TEMPLATES / "spark"}  # of snapshots, and their templates
END = re.compile(r" *(FROM|\))")  # a line after what a SELECT lists
SMALL = Tree(
    kind=np.array([EQUALS, 0, 0]),
    attribute=np.array([0, -1, -1]),
    cell=np.zeros(3, dtype=np.int64),
    first=np.array([1, -1, -1]),
    counts=None,
    votes=np.array([[0, 0], [700_000, 300_000], [200_000, 800_000]]),
)


def statements() -> dict[str, dict[str, str]]:
    """By folder, the first statement that is rendered from each template."""
    return {"steps": _statements(), "spark": _spark_statements()}


@contextlib.contextmanager
def _rendered(*modules: ModuleType) -> Iterator[dict[str, str]]:
    """Gets the first statement that the modules render from each template, or nest in others."""
    found: dict[str, str] = {}

    def recorded(step: str, **values: Any) -> Sql:
        made = render(step, **values)
        found.setdefault(step, str(made))
        return made

    with contextlib.ExitStack() as stack:
        for module in (dpforest_duckdb.sql, *modules):
            stack.enter_context(mock.patch.object(module, "render", recorded))
        yield found


def _statements() -> dict[str, str]:
    """Those of a session in DuckDB that uses all templates."""
    coding = (class_counts, coded_rows, encoding, gradients, snapshot, stored_rows)
    names = (f"{number:06d}" for number in itertools.count())
    with (
        _rendered(*coding, score_sql, outcomes, demo, memory_database, declared) as found,
        mock.patch.object(secrets, "token_hex", side_effect=names),
        duckdb.connect() as con,
        tempfile.TemporaryDirectory() as folder,
    ):
        _session(con)
        _read_csv(Path(folder).resolve() / "rows.csv")
        frame = Frame.of(
            "rows", {"size": np.array([1.5]), "colour": np.array(["red"])}, NewDatabase(con)
        )
        declared.read_off(frame, ["size", "colour"])
        demo._make_tables(Path(folder) / "nursery.duckdb")
    return {step: sql.replace(str(Path(folder).resolve()), "") for step, sql in found.items()}


def _session(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE t ({', '.join(f'{n} {kind}' for n, kind in COLUMNS.items())})")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [list(row) for row in ROWS])
    engine = DuckDBEngine(con)
    info = engine.table("t")
    domain = DOMAIN.bind(info.columns)
    with engine.snapshot(info) as rows:
        units = rows.encode(
            Coding(domain, PrivacyUnit("who", 2), trees=3, sample="disjoint", salt=1)
        )
        units.count_classes(0, 3)
        units.route(
            Splits([0, 1], [0, 1], [MULTIWAY, THRESHOLD], [0, 1], [3, 3 + domain.cells[0]]),
            5 + domain.cells[0],
        )
        units.count_leaves(3, 2 + domain.cells[0])
        alike = rows.encode(Coding(domain, ROW, trees=1, sample="all", salt=1))
        alike.count_pairs(1, range(domain.cells[1]))
        alike.sum_products({n: np.arange(cells)[:, None] for n, cells in enumerate(domain.cells)})
        alike.count_labels([SMALL])
        alike.count_scores([np.array([10])], [0, 5])
        alike.add_votes([SMALL])
        alike.sum_gradients([SMALL], Gradients(2**16, 1, 1))
        alike.rate_mixtures([[SMALL], [SMALL]], [(1, 1), (1, 2)], 2)
        few = rows.encode(Coding(domain, ROW, trees=2, sample="all", salt=1), likely_rows=200)
        few.count_classes(0, 2)
    size = replace(domain.attributes[1], edges=tuple(range(0, 2000, 20)))
    with engine.snapshot(info, shared=True) as rows:
        rows.encode(Coding(replace(domain, attributes=(size,)), ROW, trees=1, sample="all", salt=1))
        rows.encode(Coding(domain, ROW, trees=1, sample="all", salt=1))
    forest = _forest(domain)
    forest.to_sql("t")
    evaluate_table(engine, forest, engine.table("t"), NoAccount())


def _read_csv(file: Path) -> None:
    file.write_text("colour,size,who,label\n", encoding="utf-8")
    with open_database(MEMORY, files=[file]) as connection:
        source = opened_files(file, GivenDatabase(MemoryDatabase(connection)))
        info = TableInfo(source.catalog, "main", source.name, COLUMNS)
        with source.opened(info) as rows:
            rows.fill()


def _forest(domain: Domain) -> Forest:
    return Forest(
        name="model",
        recipe="auto",
        guarantee=Guarantee(epsilon="1"),
        domain=domain,
        trees=(SMALL,),
        table="t",
        version="VERSION",
    )


class _NoSpark:
    """Steps that run nothing; each finds no rows, or one of `sums`."""

    dialect = SparkCodes()

    def __init__(self, sums: dict[str, int]) -> None:
        self._sums = sums

    def rows(self, sql: str, values: Any = None, *, step: str) -> list[tuple[int, ...]]:
        return [(0,) * self._sums[step]] if step in self._sums else []

    def frame(self, sql: str, values: Any = None, *, step: str) -> None:
        return None

    def call(self, work: Any) -> Any:
        return work()


class _NoViews:
    """Views of no rows, with numbers as names."""

    def __init__(self) -> None:
        self._names = (Sql(f"`view{number}`") for number in itertools.count())

    def view(self, *_: object) -> Sql:
        return next(self._names)

    stored = view

    def drop(self, view: Sql) -> None:
        pass


def _spark_statements() -> dict[str, str]:
    """Those of a session that uses all of Spark's templates, without Spark; by their own names."""
    modules = (spark_rows, spark_snapshot, spark_outcomes, spark_votes)
    with _rendered(*modules) as found:
        _spark_session()
    return {step.removeprefix("spark/"): statement for step, statement in found.items()}


def _spark_session() -> None:
    info = TableInfo("", "", "t", COLUMNS)
    domain = DOMAIN.bind(COLUMNS)
    cells = domain.cells
    field = SimpleNamespace(simpleString=lambda: "int")
    frame = SimpleNamespace(
        schema=SimpleNamespace(fields=[SimpleNamespace(name=n, dataType=field) for n in COLUMNS])
    )
    steps: Any = _NoSpark({"sum_products": sum(range(len(cells) + 1)), "rate_mixtures": 2})
    views: Any = _NoViews()
    rows = spark_snapshot.SparkSnapshot(steps, views, info, lambda: frame, lambda: info)
    units = rows.encode(Coding(domain, PrivacyUnit("who", 2), trees=3, sample="disjoint", salt=1))
    units.count_classes(0, 3)
    splits = Splits([0, 1], [0, 1], [MULTIWAY, THRESHOLD], [0, 1], [3, 3 + cells[0]])
    with mock.patch.object(spark_rows, "MOST_LOOKUPS", 0):  # stores the nodes
        units.route(splits, 5 + cells[0])
        units.route(Splits([4], [1], [EQUALS], [1], [5 + cells[0]]), 7 + cells[0])
    units.count_leaves(3, 2 + cells[0])
    alike = rows.encode(Coding(domain, ROW, trees=1, sample="all", salt=1))
    alike.count_pairs(1, range(cells[1]))
    alike.sum_products({n: np.arange(size)[:, None] for n, size in enumerate(cells)})
    alike.count_labels([SMALL])
    alike.count_scores([np.array([10])], [0, 5])
    alike.add_votes([SMALL])
    alike.sum_gradients([SMALL], Gradients(2**16, 1, 1))
    alike.rate_mixtures([[SMALL], [SMALL]], [(1, 1), (1, 2)], 2)
    labels = Attribute("label", "categorical", domain.classes, type=COLUMNS["label"])
    rows.count_outcomes(_forest(domain), labels)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, str]]:
    return statements()


@pytest.mark.parametrize(
    ("folder", "name"),
    sorted((folder, file.stem) for folder, at in FOLDERS.items() for file in at.glob("*.sql")),
)
def test_each_template_renders_to_its_snapshot(
    found: dict[str, dict[str, str]], folder: str, name: str
) -> None:
    kept = SNAPSHOTS / folder / f"{name}.sql"
    assert kept.exists(), f"write it with python {Path(__file__).name} --write"
    assert found[folder][name] == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "template",
    [f for at in FOLDERS.values() for f in sorted(at.glob("*.sql")) if f.stem != "score"],
    ids=lambda template: f"{template.parent.name}-{template.stem}",
)
def test_each_header_has_a_line_for_inputs_outputs_and_privacy(template: Path) -> None:
    """The SQL of `score` is for its users: its header says what the model is."""
    text = template.read_text(encoding="utf-8")
    header = itertools.takewhile(lambda line: line.startswith("--"), text.splitlines())
    found = [re.match("-- (inputs|outputs|reads private rows): ", line) for line in header]
    named = [match[1] for match in found if match]
    assert named == ["inputs", "outputs", "reads private rows"]
    assert not re.search("[;,] (inputs|outputs|reads private rows):", text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_a_select_lists_is_indented(folder: str) -> None:
    for file in sorted((SNAPSHOTS / folder).glob("*.sql")):
        lines = file.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if line.strip() == "SELECT":
                below = lines[number + 1 :]
                listed = itertools.takewhile(lambda each: not END.match(each), below)
                assert all(each.startswith(line.replace("SELECT", "  ")) for each in listed), file


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_snapshot_has_a_template(folder: str) -> None:
    kept = {file.name for file in (SNAPSHOTS / folder).glob("*")}
    assert kept == {file.name for file in FOLDERS[folder].glob("*.sql")}


def test_each_step_has_the_name_of_its_template() -> None:
    """So an error of a statement names the template that it comes from."""
    call, steps = Statements.call, set[str]()

    def called(self: Statements, work: Any, *, step: str = "", sql: str = "", **on: Any) -> Any:
        if step:
            steps.add(step)
            assert sql.startswith((TEMPLATES / f"{step}.sql").read_text(encoding="utf-8")[:30])
        return call(self, work, step=step, sql=sql, **on)

    with mock.patch.object(Statements, "call", called), duckdb.connect() as con:
        _session(con)
    assert {"count_classes", "count_few"} <= steps


def test_the_counting_statement_names_the_attributes_of_each_block(
    found: dict[str, dict[str, str]],
) -> None:
    assert "\n-- colour, size\nSELECT" in found["steps"]["count_classes"]


if __name__ == "__main__" and "--write" in sys.argv:
    for folder, written in statements().items():
        (SNAPSHOTS / folder).mkdir(exist_ok=True, parents=True)
        for step, statement in written.items():
            (SNAPSHOTS / folder / f"{step}.sql").write_text(statement, encoding="utf-8")
