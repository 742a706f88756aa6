"""Rows are scored in the types of the model, and returned as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from source_rows import beside_y, fitted, pandas, polars

from dpforest_duckdb import Forest
from dpforest_duckdb.errors import DpforestError


def of_codes_and_ages(con: duckdb.DuckDBPyConnection, ledger: Path) -> Forest:
    con.execute(
        "CREATE TABLE codes AS SELECT ['001', '002'][1 + i % 2] AS code, i % 50 AS age, "
        "['yes', 'no'][1 + i % 2] AS y FROM range(2000) r(i)"
    )
    code = {"name": "code", "kind": "categorical", "domain": ["001", "002"]}
    age = {"name": "age", "kind": "numeric", "lower": 0, "upper": 49}
    return fitted(con, "codes", domain=beside_y(code, age), epsilon=100, ledger=ledger)


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
def test_columns_of_a_frame_are_returned_as_they_are(make: Any, tmp_path: Path) -> None:
    con = duckdb.connect()
    forest = of_codes_and_ages(con, tmp_path / "ledger")
    given: dict[str, list[Any]] = {
        "code": ["001", "1", "2", " 002", "b's", "nan"],
        "dpforest_read_0": [1, 2, 3, 4, 5, 6],
        "age": ["12", " 13", "x", "14.5", "1e3", None],
        "DPForest_Read_1": ["a"] * 6,
    }
    found = forest.predict(con, make(given))
    assert found.columns == [*given, "prediction", "p_no", "p_yes"]
    rows = found.fetchall()
    assert [row[:4] for row in rows] == list(zip(*given.values(), strict=True))
    assert [row[4] for row in rows][:3] == ["yes", "yes", "no"]


def test_a_frame_without_a_column_of_the_model_is_refused(tmp_path: Path) -> None:
    con = duckdb.connect()
    forest = of_codes_and_ages(con, tmp_path / "ledger")
    with pytest.raises(DpforestError, match='There is no column "age"'):
        forest.predict(con, pandas.DataFrame({"code": ["001"]}))
