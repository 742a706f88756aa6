"""The SQL of every engine that PyPI has gives DuckDB's answer, row by row, in that engine."""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import numpy as np
import pytest
import runners
from forests import (
    LARGE,
    MADE,
    REAL,
    Case,
    MakeCase,
    assert_equal,
    deep_forest,
    float_case,
    right,
    select,
)
from models import forest_of, one_split, two_attributes
from runners import Run
from variants import some

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects import DIALECTS, dialect
from dpforest_duckdb.scoring.links import SHARES
from dpforest_duckdb.scoring.publish import publish_sql

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


@some("name", MADE, keep=2)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_answers_as_duckdb_does_on_hard_values(
    made: MakeCase, in_process: Run, engine: str, name: str
) -> None:
    if (engine, name) == ("sqlite", "decimals of 16 digits"):
        pytest.skip("SQLite has doubles in the place of decimals")
    assert_agrees(made(name), in_process, engine)


@pytest.mark.parametrize("engine", [e for e in ENGINES if e != "sqlite"])
def test_a_prediction_of_a_float_column_is_a_float(
    tmp_path: Path, in_process: Run, engine: str
) -> None:
    """SQLite has doubles alone."""
    file = tmp_path / "rows.parquet"
    sql = right(*float_case(file), engine)
    assert in_process(ENGINES[engine], str(file), "rows", sql) == [(1,), (2,)]


@pytest.mark.parametrize("classes", [101, pytest.param(250, marks=pytest.mark.slow)])
@some("engine", ENGINES, keep=2)
def test_an_engine_scores_hundreds_of_classes(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, in_process: Run, engine: str, classes: int
) -> None:
    own = dialect(engine)
    domain = two_attributes(labels=tuple(f"class {n}" for n in range(classes)))
    votes = np.random.default_rng(1).permuted(np.tile(np.arange(classes) + 1, (4, 1)), axis=1)
    forest = forest_of(domain, one_split(domain, 0, votes.tolist()), link=SHARES)
    file = tmp_path / "rows.parquet"
    con.execute("CREATE TABLE rows AS SELECT 1 AS id, 'red' AS colour, 'small' AS size")
    con.execute(f"COPY rows TO '{file}' (FORMAT parquet)")
    sql = publish_sql(forest, "rows", dialect=own, key=["id"]).rstrip(";\n")
    found = in_process(ENGINES[engine], str(file), "rows", sql)
    assert [row[:2] for row in found] == [(1, f"class {votes[0].argmax()}")]


@pytest.mark.parametrize("trees", [1, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", [e for e in ENGINES if DIALECTS[e].most_nested])
def test_an_engine_reads_as_many_levels_as_are_not_refused(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, in_process: Run, engine: str, trees: int
) -> None:
    own, file = dialect(engine), tmp_path / "rows.parquet"
    con.execute(f"COPY (SELECT 1 AS id, 'c' AS c) TO '{file}' (FORMAT parquet)")

    def sql(depth: int) -> str:
        forest = deep_forest(depth, trees)
        return publish_sql(forest, "rows", dialect=own, key=["id"]).rstrip(";\n")

    deepest = ""
    with contextlib.suppress(DpforestError):
        for depth in range(1, 99):
            deepest = sql(depth)
    assert 8 < depth < 98
    assert in_process(ENGINES[engine], str(file), "rows", deepest)[0][1] == "yes"


@some("name", QUICK, keep=2)
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
