"""The SQL of every engine that PyPI has gives DuckDB's answer, row by row, in that engine."""

from __future__ import annotations

from typing import Any

import pytest
import runners
from forests import MADE, REAL, Case, MakeCase
from runners import Run

from dpforest_duckdb.dialects import dialect
from dpforest_duckdb.engine.base import Scored
from dpforest_duckdb.model.score_sql import publish_sql

ENGINES = {
    "duckdb": runners.run_duckdb,
    "sqlite": runners.run_sqlite,
    "datafusion": runners.run_datafusion,
    "polars": runners.run_polars,
    "clickhouse": runners.run_clickhouse,
}
QUICK = ("banknote auto", "nursery dpdf", "mushroom auto", "adult auto", "wall_following auto")


def select(case: Case, engine: str) -> str:
    """The SELECT of a case in an engine: the id, the prediction and the probabilities."""
    own = dialect(engine)
    table = Scored(own.ident("rows"), case.types)
    return publish_sql(case.forest, scored=table, dialect=own, key=["id"]).rstrip(";\n")


def assert_equal(case: Case, rows: list[tuple[Any, ...]]) -> None:
    """Every row of the table, with the same prediction and the same probabilities."""
    assert len(rows) == len(case.expected)
    for found, expected in zip(sorted(rows, key=lambda row: row[0]), case.expected, strict=True):
        assert found[:2] == expected[:2]
        assert found[2:] == pytest.approx(expected[2:], rel=0, abs=1e-12)


def assert_agrees(case: Case, in_process: Run, engine: str) -> None:
    assert_equal(case, in_process(ENGINES[engine], str(case.file), "rows", select(case, engine)))


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_answers_as_duckdb_does_on_hard_values(
    made: MakeCase, in_process: Run, engine: str, name: str
) -> None:
    assert_agrees(made(name), in_process, engine)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_answers_as_duckdb_does_on_real_rows(
    sampled: MakeCase, in_process: Run, engine: str, name: str
) -> None:
    assert_agrees(sampled(name), in_process, engine)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_answers_as_duckdb_does_on_every_row(
    whole: MakeCase, in_process: Run, engine: str, name: str
) -> None:
    assert_agrees(whole(name), in_process, engine)
