"""The Nursery table that the package makes by itself is the published one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

ATTRIBUTES = {
    "parents": 3,
    "has_nurs": 5,
    "form": 4,
    "children": 4,
    "housing": 3,
    "finance": 2,
    "social": 3,
    "health": 3,
}
CLASSES = {
    "not_recom": 4320,
    "priority": 4266,
    "spec_prior": 4044,
    "very_recom": 328,
    "recommend": 2,
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    sql = (files("dpforest_duckdb.sql") / "nursery.sql").read_text(encoding="utf-8")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE nursery AS {sql}")
        yield connection


def one(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row


def schema(connection: duckdb.DuckDBPyConnection, source: str) -> list[tuple[str, str]]:
    return [row[:2] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]


def test_columns_are_those_of_uci(connection: duckdb.DuckDBPyConnection) -> None:
    expected = [(name, "VARCHAR") for name in (*ATTRIBUTES, "class")]
    assert schema(connection, "nursery") == expected


def test_every_combination_is_there_once(connection: duckdb.DuckDBPyConnection) -> None:
    names = ", ".join(ATTRIBUTES)
    assert one(connection, "SELECT count(*) FROM nursery") == (12_960,)
    assert one(connection, f"SELECT count(DISTINCT ({names})) FROM nursery") == (12_960,)
    distinct = ", ".join(f"count(DISTINCT {name})" for name in ATTRIBUTES)
    assert one(connection, f"SELECT {distinct} FROM nursery") == tuple(ATTRIBUTES.values())


def test_class_counts_are_as_published(connection: duckdb.DuckDBPyConnection) -> None:
    counts = connection.execute("SELECT class, count(*) FROM nursery GROUP BY class").fetchall()
    assert dict(counts) == CLASSES


def test_rows_are_those_of_the_published_file(
    connection: duckdb.DuckDBPyConnection, data_dir: Path
) -> None:
    path = data_dir / "nursery.parquet"
    if not path.is_file():
        pytest.skip(f"There is no nursery.parquet in {data_dir}, so nothing to compare with.")
    connection.read_parquet(str(path)).create_view("published", replace=True)
    assert schema(connection, "published") == schema(connection, "nursery")
    for left, right in (("nursery", "published"), ("published", "nursery")):
        difference = f"SELECT * FROM {left} EXCEPT ALL SELECT * FROM {right}"
        assert connection.execute(difference).fetchall() == []
