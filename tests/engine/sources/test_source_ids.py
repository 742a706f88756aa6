"""The ids of privacy units in files, DataFrames and queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engine_conformance import DOMAIN
from source_rows import DOUBLED, LABEL, OF_TEXTS, arrays, database, encoded, fitted, pandas, pyarrow
from variants import some

from dpforest_duckdb import DpforestError, prepare, train
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.errors import PublicFactWarning
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.training.opening import find_rows


@pytest.mark.parametrize("last", ["b", "b\0"])
def test_no_id_among_categories_decides_whether_they_are_a_unit(last: str) -> None:
    ids = pandas.Categorical.from_codes([0, 1], pandas.Index(["a", last], dtype=object))
    frame = pandas.DataFrame({**DOUBLED, "id": ids})
    rows = find_rows(duckdb.connect(), frame)
    assert rows.engine.typed(rows.table, OF_TEXTS, PrivacyUnit("id")).columns["id"] == VARCHAR


def test_one_missing_value_moves_no_row_to_another_tree() -> None:
    """Else values that are no category would be rounded, and rows with them would be alike."""
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "x", "kind": "categorical", "domain": ["a", "b"]},
                {"name": "z", "kind": "numeric", "lower": 0, "upper": 3},
                {"name": "y", "kind": "categorical", "domain": [0, 1]},
            ],
        }
    )
    large = [2**62 + i for i in range(400)]
    trees = []
    for more in (5, None, "w"):
        rows = pandas.DataFrame({"x": [*large, more], "z": [*large, more], "y": [*[1] * 400, more]})
        with encoded(rows, domain, trees=8, sample="disjoint") as coded:
            trees.append(coded.count_leaves(0, 8)[:, 1].tolist())
    assert trees[0] == trees[1] == trees[2]
    assert sum(trees[0]) == 400


def test_bytes_that_are_no_text_stay_different_persons() -> None:
    who = [b"\xff", b"\xfe", b"\\xff", b"a"] * 50
    label = ["no"] * 200
    for rows in (
        {"who": np.array(who), "size": np.ones(200), "label": np.array(label)},
        pyarrow.table({"who": pyarrow.array(who), "size": [1.0] * 200, "label": label}),
    ):
        with encoded(rows, Domain(DOMAIN.attributes[1:], *LABEL), "who") as coded:
            assert coded.count_leaves(0, 1).sum() == 4, "a row of each"


def test_ids_that_pandas_made_floats_are_refused(tmp_path: Path) -> None:
    frame = pandas.DataFrame(arrays()).astype({"who": float})
    options = {"privacy_unit": "who", "dataset": "d", "ledger": tmp_path / "l"}
    with pytest.raises(DpforestError, match='as "Int64" or as text'):
        fitted(duckdb.connect(), frame, **options)
    fitted(duckdb.connect(), frame.astype({"who": "Int64"}), **options)


@pytest.mark.parametrize("kind", ["int64", "uint64", "Int64"])
def test_a_missing_id_among_categories_merges_no_persons(kind: str) -> None:
    """DuckDB makes floating-point numbers of such categories, and 2^53 + 1 would be 2^53."""
    ids = pandas.array([2**53, 2**53 + 1, 7], dtype=kind)
    for codes in ([0, 1, 2] * 3, [0, 1, -1] * 3):
        who = pandas.Categorical.from_codes(codes, pandas.Index(ids))
        frame = pandas.DataFrame({"a": ["p"] * 9, "y": ["no"] * 9, "who": who}, index=range(9, 18))
        with encoded(frame, OF_TEXTS, "who") as coded:
            persons = len(set(codes) - {-1})
            assert coded.count_leaves(0, 1).sum() == persons, "a row of each"


@some(
    "id_",
    [
        *("{'a': 0.5}", "[0.5]", "[0.5]::DOUBLE[1]", "MAP {'a': 0.5}", "0.5::DOUBLE::VARIANT"),
        *("'[0.5]'::JSON", "'POINT (0.5 1)'::GEOMETRY"),
    ],
    keep=4,
)
def test_ids_that_have_parts_are_refused(id_: str, tmp_path: Path) -> None:
    """A part may have been rounded, and several persons have one id then."""
    con = database(tmp_path)
    rows = con.sql(f"SELECT * REPLACE ({id_} AS who) FROM t")
    with pytest.raises(DpforestError, match="may look like one"):
        fitted(con, rows, privacy_unit="who", ledger=tmp_path / "l", dataset="d")
    assert not (tmp_path / "l").exists()
    rows = con.sql("SELECT * REPLACE (md5(who::VARCHAR)::UUID AS who) FROM t")
    fitted(con, rows, privacy_unit="who", ledger=tmp_path / "l", dataset="d")


@some(
    "ids",
    [
        pandas.arrays.SparseArray([2.0**53, np.nan]),
        pandas.interval_range(0.0, 2.0),
        pandas.Categorical([0.5, 1.5]),
        np.array([1, 2], dtype=complex),
        np.array([1, 2], dtype=np.longdouble),
    ],
    ids=lambda ids: str(ids.dtype),
    keep=2,
)
def test_ids_with_floating_point_numbers_inside_are_refused(ids: Any, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"who": ids, "colour": "red", "size": 1, "label": "no"})
    with pytest.raises(DpforestError, match='"who" is a column of floating-point numbers'):
        fitted(duckdb.connect(), frame, privacy_unit="who", ledger=tmp_path / "l", dataset="d")
    frame.astype({"who": str}).to_parquet(tmp_path / "t.parquet")
    fitted(duckdb.connect(), tmp_path / "t.parquet", privacy_unit="who", ledger=tmp_path / "l")
    frame.assign(who=[1.0, np.nan]).to_parquet(tmp_path / "f.parquet")
    with pytest.raises(DpforestError, match='"who" is a column of floating-point numbers'):
        fitted(duckdb.connect(), tmp_path / "f.parquet", privacy_unit="who", ledger=tmp_path / "l")


def test_one_word_among_ids_changes_no_bound_on_temporary_space(tmp_path: Path) -> None:
    needed = set()
    for more in (8, "x", None):
        ids = pandas.array([*range(7), more], dtype=object if more == "x" else "Int64")
        run = prepare(
            duckdb.connect(), pandas.DataFrame({"id": ids, "colour": "red", "label": "no"}),
            domain=Domain((DOMAIN.attributes[0],), "label", ("no", "yes")), epsilon=1,
            privacy_unit="id", ledger=tmp_path / "l", dataset="d",
        )  # fmt: skip
        needed.add(run.bytes_of_a_row)
    assert len(needed) == 1


IDS = [2**53 + 1, 2**53 + 2, 2**53 + 3, 7]  # as DOUBLE, the first is 2^53 and the third 2^53 + 4


@pytest.mark.parametrize(("kind", "persons"), [("VARCHAR", 4), ("BIGINT", 4), ("DOUBLE", 1)])
def test_persons_whose_ids_are_rounded_to_one_number_are_nobody(
    kind: str, persons: int, tmp_path: Path
) -> None:
    """Else the bound of two persons would be one person's. Text and whole numbers are exact."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE ids (a VARCHAR, who {kind}, label VARCHAR)")
    con.executemany("INSERT INTO ids VALUES ('x', ?, 'yes')", [[number] for number in IDS * 3])
    source: Any = "ids"
    if kind == "VARCHAR":  # as text in a file, though the domain gives bounds of a number
        source = tmp_path / "ids.csv"
        con.sql("FROM ids").write_csv(str(source))
    values = {"name": "a", "kind": "categorical", "domain": ["x", "y"]}
    bounds = {"name": "who", "kind": "numeric", "lower": 0, "upper": 100}
    label = {"name": "label", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "label", "column": [values, bounds, label]})
    with pytest.warns(PublicFactWarning):
        forest = train(
            con, source, domain=domain, epsilon=1000, recipe="greedy-tree", depth=1,
            privacy_unit="who", ledger=tmp_path / "book",
        )  # fmt: skip
    counts = forest.trees[0].counts
    assert counts is not None
    assert counts[0].sum() == persons
