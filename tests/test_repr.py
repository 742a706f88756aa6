"""What a notebook shows of an object: one short line, and no more figures than were asked for."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

import dpforest_duckdb
from dpforest_duckdb import Attribute, Domain


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE t (who INTEGER, age INTEGER CHECK (age BETWEEN 0 AND 99), ill BOOLEAN)"
    )
    con.execute("INSERT INTO t SELECT i // 2, i % 100, i % 100 > 60 FROM range(1000) AS r(i)")
    return con


def test_what_is_public_is_described_in_a_line() -> None:
    age = Attribute("age", "numeric", lower=0, upper=99)
    city = Attribute("city", "categorical", tuple(map(str, range(100))), ordered=True)
    days = Attribute(
        "day", "numeric", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2029, 12, 31)
    )
    assert repr(days) == "<Attribute 'day': numeric from 2020-01-01 to 2029-12-31>"
    assert repr(age) == "<Attribute 'age': numeric from 0 to 99>"
    assert repr(city) == ("<Attribute 'city': 100 categories in order (0, 1, 2, 3, 4, 5, 6, 7, …)>")
    assert repr(Domain((age, city), "ill", ("no", "yes"), privacy_unit="who")) == (
        "<Domain: 2 attributes (age, city), predicts ill (no, yes), privacy unit who>"
    )


def test_a_run_its_plan_and_its_forest_are_described(
    con: duckdb.DuckDBPyConnection, tmp_path: object
) -> None:
    run = dpforest_duckdb.prepare(
        con,
        "t",
        target="ill",
        epsilon=1,
        privacy_unit="who",
        rows_per_unit=2,
        recipe="greedy-tree",
        ledger=f"{tmp_path}/book",
    )
    assert repr(run) == (
        '<Run: greedy-tree on table "t", ε = 1, for each "who" (at most 2 rows used)>'
    )
    first, *lines = repr(run.plan).splitlines()
    assert first == "<Plan"
    assert [line.partition(":")[0].strip() for line in lines] == ["rows", "split", "leaf"]
    forest = run.execute()
    assert repr(forest.trees[0]).startswith("<Tree: ")
    budget = dpforest_duckdb.budget(con, "t", ledger=f"{tmp_path}/book")
    assert repr(budget) == "<Budget: spent ε = 1 by 1 run, no cap>"
    dpforest_duckdb.set_budget(
        con, "t", epsilon=3, privacy_unit="who", rows_per_unit=2, ledger=f"{tmp_path}/book"
    )
    capped = repr(dpforest_duckdb.budget(con, "t", ledger=f"{tmp_path}/book"))
    assert "spent ε = 1 by 1 run, 2 left of a cap of 3 for each" in capped


def test_an_evaluation_shows_its_figures_and_whether_they_are_private(
    con: duckdb.DuckDBPyConnection, tmp_path: object
) -> None:
    book = f"{tmp_path}/book"
    forest = dpforest_duckdb.train(con, "t", target="ill", epsilon=1, ledger=book)
    exact = dpforest_duckdb.evaluate(con, forest, "t", ledger=book)
    assert repr(exact).startswith("<Evaluation: 1000 rows, accuracy ")
    assert repr(exact).endswith("(exact, not private)>")
    assert "(0, 0)" not in repr(exact), "no counts of bins"
    noisy = dpforest_duckdb.evaluate(con, forest, "t", epsilon="0.5", ledger=book)
    assert repr(noisy).endswith("(noisy, ε = 0.5)>")
