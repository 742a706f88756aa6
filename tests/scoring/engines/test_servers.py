"""The SQL for PostgreSQL, MySQL (in MariaDB) and Spark gives DuckDB's answer in every row."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import servers
from forests import MADE, REAL, MakeCase, assert_equal, float_case, right, select
from models import forest_of, one_split
from runners import Run, run_spark

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR, column_type
from dpforest_duckdb.scoring.dialects import dialect
from dpforest_duckdb.scoring.score_sql import Scored, score_sql
from dpforest_duckdb.sql import Sql

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def postgres() -> Iterator[Run]:
    with servers.postgres() as server:
        yield server.run


@pytest.fixture(scope="module")
def mysql() -> Iterator[Run]:
    with servers.mariadb() as server:
        yield server.run


@pytest.fixture(scope="module")
def spark(in_process: Run) -> Run:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("java is not installed (Debian: default-jre-headless)")
    return lambda *arguments: in_process(run_spark, *arguments)


# with --dist loadgroup a server is started by one process only
ENGINES = [
    pytest.param(name, marks=pytest.mark.xdist_group(name))
    for name in ("postgres", "mysql", "spark")
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MADE)
def test_a_server_answers_as_duckdb_does_on_hard_values(
    request: pytest.FixtureRequest, made: MakeCase, engine: str, name: str
) -> None:
    run, case = request.getfixturevalue(engine), made(name)
    assert_equal(case, run(str(case.file), "rows", select(case, engine)))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_prediction_of_a_float_column_is_a_float(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    run, file = request.getfixturevalue(engine), tmp_path / "rows.parquet"
    assert run(str(file), "rows", right(*float_case(file), engine)) == [(1,), (2,)]


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    ("trained", "stored", "largest"),
    [("DOUBLE", "INTEGER", "3"), ("DECIMAL(9,2)", "NUMERIC", "NaN"), ("DOUBLE", "REAL", "NaN")],
)
def test_nan_is_missing_in_numbers_of_any_type(
    postgres: Run, tmp_path: Path, trained: str, stored: str, largest: str
) -> None:
    attribute = Attribute("x", "numeric", edges=(1.0,), type=column_type(trained))
    domain = Domain((attribute,), "y", ("low", "high", "none"), VARCHAR)
    forest = forest_of(domain, one_split(domain, 0, [[9, 0, 0], [0, 9, 0], [0, 0, 9]]))
    file = tmp_path / "rows.parquet"
    duckdb.sql(
        f"SELECT unnest([1, 2, 3]) AS id, unnest(['0.5', '2.5', '{largest}']::DOUBLE[]) AS x"
    ).write_parquet(str(file))
    source = Sql(f"(SELECT id, CAST(x AS {stored}) AS x FROM rows)")
    sql = score_sql(forest, Scored(source, {}), dialect=dialect("postgres"), keep=["id"])
    predicted = [row[1] for row in sorted(postgres(str(file), "rows", sql))]
    assert predicted == ["low", "high", "none" if largest == "NaN" else "high"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REAL)
def test_a_server_answers_as_duckdb_does_on_every_row(
    request: pytest.FixtureRequest, whole: MakeCase, engine: str, name: str
) -> None:
    run, case = request.getfixturevalue(engine), whole(name)
    assert_equal(case, run(str(case.file), "rows", select(case, engine)))
