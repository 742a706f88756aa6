"""A column that no tree splits on may be absent, or of any type."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from models import bit_sets, forest_of, one_split, two_attributes
from shell import dpforest

from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.scoring.dialects import DIALECTS
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.tree import Tree

UNUSED = "a.b"  # no name for BigQuery


@pytest.fixture(params=["one attribute", "none"])
def forest(request: pytest.FixtureRequest) -> Forest:
    """A forest over two attributes that reads the second, or neither."""
    domain = two_attributes((UNUSED, "size"))
    tree = one_split(domain, 1, [[3, 1], [1, 3], [1, 1]])
    if request.param == "none":
        leaf = np.zeros(1, dtype=np.int64)
        tree = Tree(leaf, leaf - 1, leaf, leaf - 1, None, np.array([[3, 1]]))
    return forest_of(domain, tree)


@pytest.fixture
def expected(con: duckdb.DuckDBPyConnection, forest: Forest) -> list[tuple[object, ...]]:
    """The predictions for the rows of the table `slim`, which has no other column than `size`."""
    con.execute("CREATE TABLE slim AS SELECT unnest(['small', 'large', 'x', NULL]) AS size")
    con.execute(f"CREATE TABLE whole AS SELECT 'red' AS \"{UNUSED}\", size FROM slim")
    return [row[1:] for row in forest.predict(con, "whole").fetchall()]


def test_rows_without_it_are_scored(
    con: duckdb.DuckDBPyConnection, forest: Forest, expected: list[tuple[object, ...]]
) -> None:
    frame = con.table("slim").to_arrow_table()
    for rows in ("slim", con.table("slim"), frame, frame.to_pandas()):
        assert len(forest.predict(con, rows).fetchall()) == 4
    assert forest.predict(con, "slim").fetchall() == expected
    votes = forest.votes([{"size": size} for size, *_ in expected])
    assert forest.probabilities(votes)[:, 1] == pytest.approx([row[-1] for row in expected])
    con.execute(f'CREATE TABLE other AS SELECT 7 AS "{UNUSED}", size FROM slim')
    assert [row[1:] for row in forest.predict(con, "other").fetchall()] == expected
    with bit_sets():
        for fast in (False, True):
            con.execute(forest.to_sql(form="macro", fast=fast, replace=True))
            assert con.execute("FROM made_scored('slim')").fetchall() == expected
            assert con.execute(forest.to_sql("slim", fast=fast)).fetchall() == expected


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_without_it_are_scored(
    con: duckdb.DuckDBPyConnection,
    forest: Forest,
    expected: list[tuple[object, ...]],
    tmp_path: Path,
    suffix: str,
) -> None:
    forest.save(tmp_path / "m.json")
    con.execute(f"COPY slim TO '{tmp_path / 'slim'}.{suffix}'")
    out = tmp_path / "out.parquet"
    model = ("--model", tmp_path / "m.json", "--into", out)
    assert dpforest("score", "--db", tmp_path / f"slim.{suffix}", *model).code == 0
    assert con.execute(f"FROM '{out}'").fetchall() == expected


def test_rows_without_it_are_evaluated(
    con: duckdb.DuckDBPyConnection,
    forest: Forest,
    expected: list[tuple[object, ...]],
    tmp_path: Path,
) -> None:
    con.execute("CREATE TABLE known AS SELECT size, 'no' AS target FROM slim")
    right = sum(row[1] == "no" for row in expected) / 4
    frame = con.table("known").to_arrow_table()
    ledger = {"ledger": tmp_path / "ledger"}
    assert evaluate(con, forest, "known", **ledger).accuracy == right
    assert evaluate(con, forest, frame, dataset="d", **ledger).accuracy == right
    if forest.used:
        con.execute(f'CREATE TABLE odd AS SELECT *, [1] AS "{UNUSED}" FROM known')
        assert evaluate(con, forest, "odd", **ledger).accuracy == right
        for rows in (con.table("odd").to_arrow_table(), con.sql("FROM odd WHERE target = 'no'")):
            assert evaluate(con, forest, rows, dataset="d", **ledger).accuracy == right


@pytest.mark.parametrize("engine", DIALECTS)
def test_the_sql_of_an_engine_does_not_name_it(forest: Forest, engine: str) -> None:
    assert UNUSED not in forest.to_sql("t", dialect=engine, key=["id"])
