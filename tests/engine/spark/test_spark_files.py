"""Parquet files in Spark: no value decides how they are read, and what is unclear is refused."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pytest
from engine_conformance import DOMAIN, ROWS
from spark_tables import TEXT, made

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import BIGINT, VARCHAR
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.spark.files import SparkFiles
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.training.opening import find_rows
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.train import train, train_many

# with --dist loadgroup one process runs the tests of these files, with one Spark at a time
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("training on spark")]


def test_files_of_one_name_are_each_read(spark: Any, tmp_path: Path) -> None:
    """Runs in one pass, each debited from its own file: the second reads the second file."""
    made(spark, "t", ROWS)
    paths = [tmp_path / label / "rows" for label in DOMAIN.classes]
    for path in paths:
        spark.table("t").where(f"label = '{path.parent.name}'").write.parquet(str(path))
    runs = [
        prepare(
            spark,
            path,
            domain=DOMAIN,
            privacy_unit="row",
            epsilon=100,
            recipe="pinq-id3",
            ledger=tmp_path / "ledger",
        )
        for path in paths
    ]
    forests = list(train_many(runs))
    assert [int(forest.trees[0].votes[-1].argmax()) for forest in forests] == [0, 1]


def test_no_row_decides_the_type_of_a_column_from_folders(spark: Any, tmp_path: Path) -> None:
    """Spark would take the years for numbers, until one row has another value."""
    rows = spark.range(60).selectExpr(
        "id % 3 AS n", "id % 2 AS label", "string(2020 + id % 2) AS year"
    )
    domain = domain_from_mapping(
        {
            "target": "label",
            "column": [
                {"name": "n", "kind": "numeric", "lower": 0, "upper": 2},
                {"name": "year", "kind": "categorical", "domain": ["2020", "2021"]},
                {"name": "label", "kind": "categorical", "domain": [0, 1]},
            ],
        }
    )
    for number, year in enumerate(("2021", "none of these")):
        folder = tmp_path / f"{number}"
        more = spark.range(1).selectExpr("id AS n", "id AS label", f"'{year}' AS year")
        rows.union(more).write.partitionBy("year").parquet(str(folder))
        given = {"domain": domain, "privacy_unit": "row", "epsilon": 1000, "recipe": "pinq-id3"}
        forest = train(spark, folder, ledger=tmp_path / "ledger", **given)
        assert [a.type for a in forest.domain.attributes] == [BIGINT, VARCHAR]
        assert forest.trees[0].attribute[0] == 1, "the label is in the year"


def test_files_that_spark_would_read_twice_are_refused(spark: Any, tmp_path: Path) -> None:
    made(spark, "t", ROWS)
    for name, link in (("hard", os.link), ("soft", os.symlink)):
        folder = tmp_path / name
        spark.table("t").coalesce(1).write.parquet(str(folder))
        (file,) = folder.glob("*.parquet")
        given = {"domain": DOMAIN, "privacy_unit": "row", "epsilon": 1, "recipe": "pinq-id3"}
        run = prepare(spark, folder, ledger=tmp_path / "ledger", **given)
        link(file, folder / "again.parquet")
        with pytest.raises(DpforestError, match="have changed since the run was planned"):
            run.execute()
        with pytest.raises(DpforestError, match="count twice"):
            prepare(spark, folder, ledger=tmp_path / "ledger", **given)
    assert not (tmp_path / "ledger").exists()


def read(spark: Any, path: Path, a: dict[str, Any], unit: str = "row") -> Any:
    """The counts by value of "a" and class, after the types are known."""
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [{"name": "a", **a}, label]})
    engine = SparkFiles(spark, path)
    info = engine.typed(engine.table(engine.name), domain, PrivacyUnit(unit))
    engine.refuse_unseen(info, ["a", unit])
    with engine.snapshot(info) as snapshot:
        bounded = Coding(
            domain.bind(info.columns), PrivacyUnit(unit, 1), trees=1, sample="all", salt=1
        )
        return str(info.columns["a"]), snapshot.encode(bounded).count_classes(0, 1)[0][0].tolist()


def written(folder: Path, *files: dict[str, Any]) -> Path:
    """Parquet files as pandas writes them."""
    folder.mkdir(parents=True)
    for number, columns in enumerate(files):
        pandas.DataFrame(columns).to_parquet(folder / f"{number}.parquet")
    return folder


NUMBER = {"kind": "numeric", "lower": 0.0, "upper": 10.0, "bins": 2}
CODE = {"kind": "categorical", "domain": ["1.5", "2.5"]}


def test_no_digit_of_a_decimal_changes_how_files_are_read(spark: Any, tmp_path: Path) -> None:
    for number, kind in enumerate((NUMBER, CODE)):
        found = []
        for more in ("9.5", "9.25", "9.1111111111111111111111111111"):
            a = [Decimal("1.5"), Decimal("2.5"), Decimal(more)]
            folder = written(tmp_path / f"{number}-{more}", {"a": a, "y": ["no", "yes", "no"]})
            found.append(read(spark, folder, kind))
        assert found[0] == found[1] == found[2]
        assert found[0][0] == "DOUBLE"
    with pytest.raises(DpforestError, match="a category that is no number never occurs"):
        read(spark, folder, {"kind": "categorical", "domain": ["1.5", "unknown"]})


def test_whether_a_column_has_a_value_changes_nothing_about_files(
    spark: Any, tmp_path: Path
) -> None:
    rows, none = {"a": ["p", "q"], "y": ["no", "yes"]}, [None, None]
    alone = read(spark, written(tmp_path / "alone", rows), TEXT)
    for name, more in {
        "attribute": {"a": none, "y": ["no", "yes"]},
        "target": {"a": ["p", "q"], "y": none},
        "unused": {**rows, "z": none},
    }.items():
        first = {**rows, "z": ["x", "y"]} if name == "unused" else rows
        kind, counts = read(spark, written(tmp_path / name, first, more), TEXT)
        assert kind == "VARCHAR"
        assert read(spark, written(tmp_path / f"{name}-turned", more, first), TEXT)[1] == counts
        assert np.sum(counts) == (2 if name == "target" else 4)
    kind, counts = read(spark, written(tmp_path / "none", {"a": none, "y": ["no", "yes"]}), TEXT)
    assert (kind, np.sum(counts)) == (alone[0], 2)


def test_nested_columns_of_files_may_differ(spark: Any, tmp_path: Path) -> None:
    rows = {"a": ["p", "q"], "y": ["no", "yes"]}
    first = {**rows, "z": [{"k": 1}, {"k": 2}], "note": ["x", "y"]}
    second = {**rows, "z": [{"other": "w"}, {"other": "v"}], "note": [None, None]}
    assert np.sum(read(spark, written(tmp_path / "rows", first, second), TEXT)[1]) == 4


def test_a_session_that_merges_schemas_reads_the_same_files(spark: Any, tmp_path: Path) -> None:
    rows = {"a": ["p", "q"], "y": ["no", "yes"]}
    folder = written(tmp_path / "rows", {**rows, "z": ["x", "y"]}, {**rows, "z": [None, None]})
    spark.conf.set("spark.sql.parquet.mergeSchema", "true")
    try:
        assert np.sum(read(spark, folder, TEXT)[1]) == 4
    finally:
        spark.conf.unset("spark.sql.parquet.mergeSchema")


def test_an_empty_column_changes_nothing_about_files_of_a_pattern(
    spark: Any, tmp_path: Path
) -> None:
    """Files are read in parts then, and folders below a pattern give columns."""
    found = []
    for more in (["x", "y"], [None, None]):
        folder = tmp_path / f"{more[0]}"
        for z, part in (("x", "a=p"), (more[0], "a=q")):
            columns = {"y": ["no", "yes"], "z": [z, z]}
            written(folder / "mid" / part / "rows", columns)
        found.append(read(spark, folder / "mid" / "a=*" / "rows", TEXT))
    assert found[0] == found[1]
    assert np.array(found[0][1])[:2].tolist() == [[1, 1], [1, 1]]


def test_files_that_change_after_the_plan_are_not_read(spark: Any, tmp_path: Path) -> None:
    rows = {"a": ["p", "q"], "y": ["no", "yes"], "id": [1, 2]}
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "a", **TEXT},
                {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    none = {**rows, "a": [None, None]}
    changes = [(rows, {"id": [10**17, None]}), (rows, none), (rows, {"a": [1, 2]}), (none, {})]
    for number, (before, changed) in enumerate(changes):
        folder = written(tmp_path / str(number), before)
        run = prepare(
            spark, folder, domain=domain, privacy_unit="id", epsilon=1, ledger=tmp_path / "ledger"
        )
        pandas.DataFrame({**rows, **changed}).to_parquet(folder / "0.parquet")
        with pytest.raises(DpforestError, match="have changed since the run was planned"):
            run.execute()


def test_files_whose_names_are_patterns_are_refused(spark: Any, tmp_path: Path) -> None:
    folder = written(tmp_path / "rows", {"a": ["p", "q"], "y": ["no", "yes"]})
    (folder / "0.parquet").rename(folder / "x{1,2}.parquet")
    with pytest.raises(DpforestError, match="is taken as a pattern"):
        SparkFiles(spark, folder)


def test_truth_values_of_files_declare_nothing(spark: Any, tmp_path: Path) -> None:
    """A column is of truth values only if one row has one."""
    folder = written(tmp_path / "rows", {"a": [True, False], "y": [True, False]})
    with pytest.raises(DpforestError, match="No column declares"):
        prepare(spark, folder, target="y", epsilon=1, ledger=tmp_path / "ledger")


def test_decimal_classes_of_files_are_those_of_duckdb(spark: Any, tmp_path: Path) -> None:
    y = [Decimal(text) for text in ("0.0", "0.5", "1.0", "1.5")]
    folder = written(tmp_path / "rows", {"a": ["p"] * 4, "y": y})
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "a", **TEXT},
                {"name": "y", "kind": "categorical", "domain": [0, 1]},
            ],
        }
    )
    counts = []
    for engine in (
        SparkFiles(spark, folder),
        find_rows(duckdb.connect(), folder / "0.parquet").engine,
    ):
        info = engine.typed(engine.table("rows"), domain, ROW)
        with engine.snapshot(info) as snapshot:
            coding = Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
            counts.append(snapshot.encode(coding).count_leaves(0, 1).tolist())
    assert counts[0] == counts[1] == [[1, 2]]


def test_a_unit_that_may_be_rounded_or_has_parts_is_refused_in_files(
    spark: Any, tmp_path: Path
) -> None:
    rows = {"a": ["p", "q"], "y": ["no", "yes"]}
    units = {"rounded": [10**17, None], "parts": [{"k": 0.5}, {"k": 1.5}], "list": [[1.0], [2.0]]}
    for name, ids in units.items():
        folder = written(tmp_path / name, {**rows, "id": ids})
        words = "floating-point" if name == "rounded" else "two persons may look like one"
        with pytest.raises(DpforestError, match=words):
            read(spark, folder, TEXT, "id")
    whole = written(tmp_path / "whole", {**rows, "id": [10**17, 10**17 + 1]})
    assert np.sum(read(spark, whole, TEXT, "id")[1]) == 2
