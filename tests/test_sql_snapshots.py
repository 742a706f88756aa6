"""One rendered statement per template, kept for people to read and compared here.

`python tests/test_sql_snapshots.py --write` writes them after a change that was meant.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest
from engine_conformance import COLUMNS, DOMAIN, ROW, ROWS

import dpforest_duckdb.sql
from dpforest_duckdb import demo
from dpforest_duckdb.engine import (
    class_counts,
    encoding,
    gradients,
    outcomes,
    snapshot,
    stored_rows,
)
from dpforest_duckdb.engine import rows as coded_rows
from dpforest_duckdb.engine.base import Coding, Gradients, Splits
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring import score_sql
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.training.evaluation import evaluate_table
from dpforest_duckdb.tree import EQUALS, MULTIWAY, THRESHOLD, Guarantee, Tree

FOLDER = Path(__file__).parent / "snapshots" / "steps"
TEMPLATES = Path(dpforest_duckdb.sql.__file__ or "").parent
SMALL = Tree(
    kind=np.array([EQUALS, 0, 0]),
    attribute=np.array([0, -1, -1]),
    cell=np.zeros(3, dtype=np.int64),
    first=np.array([1, -1, -1]),
    counts=None,
    votes=np.array([[0, 0], [700_000, 300_000], [200_000, 800_000]]),
)


def statements() -> dict[str, str]:
    """The first statement that is rendered from each template, in a session that uses them all."""
    found: dict[str, str] = {}

    def recorded(step: str, **values: Any) -> Sql:
        made = render(step, **values)
        found.setdefault(step, str(made))
        return made

    with contextlib.ExitStack() as stack:
        coding = (class_counts, coded_rows, encoding, gradients, snapshot, stored_rows)
        for module in (*coding, score_sql, outcomes, demo):
            stack.enter_context(mock.patch.object(module, "render", recorded))
        names = (f"{number:06d}" for number in itertools.count())
        stack.enter_context(mock.patch.object(secrets, "token_hex", side_effect=names))
        con = stack.enter_context(duckdb.connect())
        _session(con)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        demo._make_tables(Path(folder) / "nursery.duckdb")
    return found


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
    forest = Forest(
        name="model",
        recipe="auto",
        guarantee=Guarantee(epsilon="1"),
        domain=domain,
        trees=(SMALL,),
        table="t",
        version="VERSION",
    )
    forest.to_sql("t")
    evaluate_table(engine, forest, engine.table("t"))


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return statements()


@pytest.mark.parametrize("name", sorted(file.stem for file in TEMPLATES.glob("*.sql")))
def test_each_template_renders_to_its_snapshot(found: dict[str, str], name: str) -> None:
    kept = FOLDER / f"{name}.sql"
    assert kept.exists(), f"write it with python {Path(__file__).name} --write"
    assert found[name] == kept.read_text(encoding="utf-8")


def test_the_counting_statement_names_the_attributes_of_each_block(found: dict[str, str]) -> None:
    assert "\n-- colour, size\nSELECT" in found["count_classes"]


if __name__ == "__main__" and "--write" in sys.argv:
    FOLDER.mkdir(exist_ok=True, parents=True)
    for step, statement in statements().items():
        (FOLDER / f"{step}.sql").write_text(statement, encoding="utf-8")
