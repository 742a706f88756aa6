"""Rows are scored in the types of the model, and returned as they are."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from source_rows import beside_y, fitted, pandas, polars
from variants import some

from dpforest_duckdb import Forest, evaluate
from dpforest_duckdb.engine.predictions.scored_files import score_files
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


ODD = {1.5: 1, True: 1, "1": 1, b"1": 1, 2**130: 2, "x": None, "\ud800": None, (1,): None}


@some(
    ("odd", "like", "make"),
    [(*read, make) for read, make in product(ODD.items(), (pandas.DataFrame, dict))],
    keep=len(ODD),
)
def test_objects_are_read_as_in_training_however_rare(
    odd: object, like: object, make: Any, tmp_path: Path
) -> None:
    """DuckDB takes their type from a thousand of them, and would make 2 of 1.5."""
    con = duckdb.connect()
    domain = beside_y({"name": "q", "kind": "numeric", "edges": [0.5, 1.7]})

    def rows(found: object) -> Any:
        objects = [place % 3 if place % 7 else None for place in range(4000)]
        objects[2221], objects[2222] = found, like  # type: ignore[call-overload]
        held = np.array([*objects, ()], dtype=object)[:-1]
        return make({"q": held, "y": np.array([["no", "yes"][q == 1] for q in objects])})

    options = {"epsilon": 100, "ledger": tmp_path / "ledger", "dataset": "d"}
    forest = fitted(con, rows(like), domain=domain, **options)
    found = forest.predict(con, rows(odd))
    assert found.columns == ["q", "y", "prediction", "p_no", "p_yes"]
    shares = found.project("p_yes").fetchall()
    assert min(shares)[0] < 0.1 < 0.9 < max(shares)[0]
    assert shares[2221] == shares[2222]
    assert shares == forest.predict(con, rows(like)).project("p_yes").fetchall()


@pytest.mark.parametrize("make", [pandas.DataFrame, dict], ids=["pandas", "arrays"])
def test_missing_objects_stay_missing_beside_columns_of_any_name(make: Any, tmp_path: Path) -> None:
    """One category is the text that NumPy writes for a masked object."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE t AS SELECT [NULL, '?', '7'][1 + i % 3] AS q, "
        "['yes', 'no', 'no'][1 + i % 3] AS y FROM range(3000) r(i)"
    )
    domain = beside_y({"name": "q", "kind": "categorical", "domain": ["?", "7"], "nullable": True})
    forest = fitted(con, "t", domain=domain, epsilon=100, ledger=tmp_path / "ledger")
    given = {
        "q": np.array([None, "?", 7, float("nan")], dtype=object),
        "dpforest_text_0": np.array([1, 2, 3, 4]),
        "DPForest_Text_0_": np.array(["7"] * 4),
    }
    found = forest.predict(con, make(given))
    assert found.columns == [*given, "prediction", "p_no", "p_yes"]
    assert found.project("dpforest_text_0, prediction").fetchall() == [
        (1, "yes"), (2, "no"), (3, "no"), (4, "yes")
    ]  # fmt: skip


def test_a_frame_without_a_column_of_the_model_is_refused(tmp_path: Path) -> None:
    con = duckdb.connect()
    forest = of_codes_and_ages(con, tmp_path / "ledger")
    with pytest.raises(DpforestError, match='There is no column "age"'):
        forest.predict(con, pandas.DataFrame({"code": ["001"]}))


TYPED = {  # of a type: two values as DuckDB writes them, and how a domain reads them
    "DOUBLE": ("1.0", "2.5", {"domain": ["1", "2.5"]}),
    "FLOAT": ("1.0", "2.5", {"domain": ["1", "2.5"]}),
    "DECIMAL(6,2)": ("1.00", "2.50", {"domain": ["1", "2.5"]}),
    "DECIMAL(38,20)": ("1", "0.12345678901234567890", {"domain": ["1", "0.1234567890123456789"]}),
    "TIMESTAMP": (
        "2020-01-01 00:00:00.5", "2020-01-02", {"domain": ["2020-01-01 00:00:00.5", "2020-01-02"]}
    ),
    "TIMESTAMP_S": ("2020-01-01", "2020-01-02", {"domain": ["2020-01-01", "2020-01-02"]}),
    "DATE": ("2020-01-01", "2020-01-02", {"domain": ["2020-01-01", "2020-01-02"]}),
    "INTEGER": ("1", "2", {"domain": [1, 2]}),
    "BIGINT": ("12345678901234567", "3", {"domain": [12345678901234567, 3]}),
    "BOOLEAN": ("true", "false", {"domain": [True, False]}),
    "VARCHAR": ("true", "01", {"domain": ["true", "01"]}),
    "ENUM('a', 'b')": ("a", "b", {"domain": ["a", "b"]}),
    "FLOAT, in bins": ("0.5", "0.6", {"edges": [0.5, 0.6]}),
    "SMALLINT, in bins": ("6", "7", {"edges": [5, 6]}),
}  # fmt: skip
READ_ONLY_AS_TYPED = ("DOUBLE", "FLOAT", "DECIMAL", "TIMESTAMP", "BOOLEAN")


def of_type(con: duckdb.DuckDBPyConnection, name: str, ledger: Path) -> Forest:
    """A model of a table whose column `v` has the two values of a type; `few` has both once."""
    first, second, read = TYPED[name]
    kind = name.removesuffix(", in bins")
    con.execute(
        f"CREATE TABLE t AS SELECT CAST(['{first}', '{second}'][1 + i % 2] AS {kind}) AS v, "
        "['yes', 'no'][1 + i % 2] AS y FROM range(2000) r(i)"
    )
    con.execute("CREATE TABLE few AS SELECT DISTINCT v, y FROM t")
    column = {"name": "v", "kind": "categorical" if "domain" in read else "numeric", **read}
    return fitted(con, "t", domain=beside_y(column), epsilon=100, ledger=ledger)


def shares(relation: duckdb.DuckDBPyRelation) -> list[tuple[str, float]]:
    return sorted(relation.project("y, p_yes").fetchall())


@some("name", TYPED, keep=4)
def test_a_model_scores_other_forms_of_its_table_alike(name: str, tmp_path: Path) -> None:
    con = duckdb.connect()
    forest = of_type(con, name, tmp_path / "ledger")
    wanted = shares(forest.predict(con, "few"))
    assert (wanted[0][1] < 0.1, wanted[1][1] > 0.9) == (True, True)
    few = con.table("few")
    for frame in (few.df(), few.pl(), few.to_arrow_table()):
        assert shares(forest.predict(con, frame)) == wanted, type(frame)
    few.write_csv(str(tmp_path / "few.csv"))
    few.write_parquet(str(tmp_path / "few.parquet"))
    for file in ("few.csv", "few.parquet"):
        out = tmp_path / f"scored_{file}.parquet"
        score_files(con, forest, tmp_path / file, out, suffix=out.suffix, prefix="", trace=None)
        assert shares(con.sql(f"FROM '{out}'")) == wanted, file
    found = evaluate(con, forest, tmp_path / "few.csv", ledger=tmp_path / "ledger")
    assert found.accuracy == 1


@some("name", [name for name in TYPED if "bins" not in name], keep=5)
def test_text_in_the_place_of_a_type_is_read_alike_or_refused(name: str, tmp_path: Path) -> None:
    con = duckdb.connect()
    forest = of_type(con, name, tmp_path / "ledger")
    con.execute("CREATE TABLE texts AS SELECT CAST(v AS VARCHAR) AS v, y FROM few")
    if name.startswith(READ_ONLY_AS_TYPED):
        with pytest.raises(DpforestError, match='"v" has type VARCHAR, but the model was'):
            forest.predict(con, "texts")
    else:
        assert shares(forest.predict(con, "texts")) == shares(forest.predict(con, "few"))


def test_no_other_number_becomes_a_category_or_moves_to_another_bin(tmp_path: Path) -> None:
    con = duckdb.connect()
    forest = of_type(con, "INTEGER", tmp_path / "ledger")
    values = ["1", "1.0", "2", "1.5", "2.4", "3"]
    found = forest.predict(con, pandas.DataFrame({"v": values}))
    (tmp_path / "v.csv").write_text("\n".join(["v", *values]))
    score_files(
        con, forest, tmp_path / "v.csv", tmp_path / "o.csv", suffix=".csv", prefix="", trace=None
    )
    for scored in (found, con.sql(f"FROM '{tmp_path}/o.csv'")):
        one, same, two, half, more, other = scored.fetchnumpy()["p_yes"].tolist()
        assert one == same > two
        assert half == more == other
    con.execute("DROP TABLE t; DROP TABLE few")
    bins = of_type(con, "FLOAT, in bins", tmp_path / "ledger")
    far = bins.predict(con, pandas.DataFrame({"v": [0.6, 1e300, -1e300, 0.5]}))
    high, higher, lower, low = far.fetchnumpy()["p_yes"].tolist()
    assert (high, low) == (higher, lower)
