"""The SQL of every engine that PyPI has gives DuckDB's answer, row by row, in that engine."""

from __future__ import annotations

import pytest
import runners
from forests import LARGE, MADE, REAL, Case, MakeCase, assert_equal, select
from runners import Run

ENGINES = {
    "duckdb": runners.run_duckdb,
    "sqlite": runners.run_sqlite,
    "datafusion": runners.run_datafusion,
    "polars": runners.run_polars,
    "clickhouse": runners.run_clickhouse,
}
QUICK = ("banknote auto", "nursery dpdf", "mushroom auto", "adult auto", "wall_following auto")


def assert_agrees(case: Case, in_process: Run, engine: str, *, force: bool = False) -> None:
    sql = select(case, engine, force=force)
    assert_equal(case, in_process(ENGINES[engine], str(case.file), "rows", sql))


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_answers_as_duckdb_does_on_hard_values(
    made: MakeCase, in_process: Run, engine: str, name: str
) -> None:
    if (engine, name) == ("sqlite", "decimals of 16 digits"):
        pytest.skip("SQLite has doubles in the place of decimals")
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
    assert_agrees(whole(name), in_process, engine, force=name in LARGE)
