"""Training on Spark: what an engine must do, and the same forests as on DuckDB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engine_conformance import COLUMNS, DOMAIN, ROWS, Subject, conforms
from spark_sessions import NURSERY_DOMAIN
from spark_tables import PAIR, added, made, pairs

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.shared.exponentials import ONE, exponential, logarithm
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.layout import Layout
from dpforest_duckdb.engine.spark.leaves import BITS, Leaves
from dpforest_duckdb.learners.boosting import random_trees
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.bits import SeededBits
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.train import train

# with --dist loadgroup one process runs the tests of these files, with one Spark at a time
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("training on spark")]


def test_spark_is_an_engine(spark: Any) -> None:
    made(spark, "t", ROWS)
    conforms(Subject(SparkEngine(spark), lambda rows: added(spark, "t", rows)))


RECIPES = ("auto", "boosted", "class-means", "tree-beside-sums", "pinq-id3")
TABLES = ("made", "nursery", "types")


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The same rows as tables of Spark and of DuckDB."""
    folder = tmp_path_factory.mktemp("tables")
    con = duckdb.connect()
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    con.execute(f"CREATE TABLE made ({columns})")
    con.executemany("INSERT INTO made VALUES (?, ?, ?, ?)", ROWS)
    con.execute(f"CREATE TABLE nursery AS {render('nursery')}")
    con.execute(
        "CREATE TABLE types AS SELECT "
        "CASE WHEN i % 11 > 0 THEN i % 97 / 7e0 ELSE 'nan'::DOUBLE END AS f, "
        "(i % 41 - 20)::DECIMAL(5, 2) / 2 AS d, DATE '2020-01-01' + (i % 400)::INTEGER AS day, "
        "i % 3 = 0 AS flag, 'it''s \\ ' || i % 4 AS text, (i * 7 % 10)::TINYINT AS score, "
        "(i * 13 % 29 + i % 41 > 30)::INTEGER AS label FROM range(3000) AS r(i)"
    )
    for name in TABLES:
        file = folder / f"{name}.parquet"
        con.execute(f"COPY {name} TO '{file}' (FORMAT parquet)")
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.read.parquet(str(file)).repartition(3).write.saveAsTable(name)
    yield con, folder
    con.close()


def declared(name: str) -> Domain:
    """A domain for each table."""
    if name == "made":
        return DOMAIN
    if name == "nursery":
        return domain_from_mapping(NURSERY_DOMAIN)
    return domain_from_mapping(
        {
            "target": "label",
            "column": [
                {"name": "f", "kind": "numeric", "lower": 0, "upper": 13, "nullable": True},
                {"name": "d", "kind": "numeric", "lower": -10, "upper": 10},
                {"name": "day", "kind": "numeric", "lower": "2020-01-01", "upper": "2021-02-01"},
                {"name": "flag", "kind": "categorical", "domain": [True, False]},
                {"name": "text", "kind": "categorical", "domain": ["it's \\ 0", "it's \\ 1"]},
                {"name": "score", "kind": "numeric", "lower": 0, "upper": 9},
                {"name": "label", "kind": "categorical", "domain": [0, 1]},
            ],
        }
    )


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", TABLES)
def test_the_forest_is_that_of_duckdb(spark: Any, tables: Any, name: str, recipe: str) -> None:
    duckdb_connection, folder = tables
    found = [
        train(
            where,
            name,
            domain=declared(name),
            privacy_unit="row",
            epsilon=3,
            delta="1e-6",
            recipe=recipe,
            seed=7,
            ledger=folder / f"{number}.ledger",
        )
        for number, where in enumerate((duckdb_connection, spark))
    ]
    assert len(found[0].trees) >= 1
    assert same(found[0]) == same(found[1])


def test_exponentials_and_logarithms_are_those_of_duckdb(spark: Any, tmp_path: Path) -> None:
    """One in 31 of all arguments; DuckDB's are tested at all of them (`test_exponentials`)."""
    file = tmp_path / "numbers.parquet"
    for value, last in ((exponential("d"), 18_000_000), (logarithm(f"d + {ONE}"), 63 * ONE)):
        numbers = f"SELECT d, {value} AS v FROM range(0, {last}, 31) AS r(d)"
        duckdb.execute(f"COPY ({numbers}) TO '{file}' (FORMAT parquet)")
        found = (
            spark.read.parquet(str(file))
            .selectExpr("count(*) AS n", f"count_if({value} <> v) AS wrong")
            .first()
        )
        assert found.n == len(range(0, last, 31))
        assert found.wrong == 0


def same(forest: Forest) -> dict[str, Any]:
    """All of a forest's JSON but its names and the engine's types."""
    stated = json.loads(forest.to_json())
    return {key: stated[key] for key in stated if key not in ("name", "table", "version", "domain")}


def test_leaves_are_found_by_bit_sets(spark: Any) -> None:
    """Of a tree of one word and of one of several, and of a leaf."""
    numbers = [Attribute(f"a{n}", "numeric", edges=(*range(n + 3),)) for n in range(4)]
    domain = Domain(tuple(numbers), "label", ("no", "yes"))
    cells = domain.cells
    codes = np.indices(cells).reshape(len(cells), -1).T
    dialect = SparkEngine(spark).steps.dialect
    layout = Layout(cells, 2, dialect.ident)
    packed = layout.packed([dialect.ident(a.name) for a in numbers])
    words = [f"{value} AS {column}" for value, column in zip(packed, layout.words, strict=True)]
    rows = spark.createDataFrame(codes.tolist(), [a.name for a in numbers]).selectExpr(*words)
    for depth in (0, 4, 12):
        (tree,) = random_trees(domain, 1, depth, np.ones(len(domain.attributes)), SeededBits(1))
        assert (len(tree.leaves) > 2 * BITS) == (depth == 12)
        leaf = Leaves.of(layout, tree).sql(Sql("0"), dialect.numbers)
        found = rows.selectExpr(f"{leaf} AS leaf").collect()
        assert [row.leaf for row in found] == tree.find(codes).tolist()


def test_a_run_leaves_an_anchor_and_no_rows(spark: Any, tmp_path: Path) -> None:
    """Units bounded, trees disjoint; the forest predicts and is evaluated in Spark."""
    made(spark, "t", ROWS)
    forest = train(
        spark,
        "t",
        domain=DOMAIN,
        privacy_unit="who",
        rows_per_unit=2,
        epsilon=1,
        recipe="smooth-forest",
        trees=3,
        ledger=tmp_path / "ledger",
    )
    assert forest.guarantee.private
    assert "dataset" in SparkEngine(spark).table("t").comment
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("dpforest_")]
    assert forest.predict(spark, "t").count() == len(ROWS)
    figures = evaluate(spark, forest, "t", ledger=tmp_path / "ledger")
    assert figures.rows == sum(row[3] in ("no", "yes") for row in ROWS)
    assert figures.unlabelled == len(ROWS) - figures.rows > 0
    noisy = evaluate(spark, forest, "t", epsilon=1, ledger=tmp_path / "ledger")
    assert noisy.private


def test_no_setting_of_the_session_changes_a_forest(spark: Any, tables: Any) -> None:
    _, folder = tables
    other = spark.newSession()
    for key, value in {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    }.items():
        other.conf.set(key, value)
    given = {"domain": declared("types"), "privacy_unit": "row", "epsilon": 3, "seed": 7}
    found = [
        train(session, "types", recipe="pinq-id3", ledger=folder / "1.ledger", **given)
        for session in (spark, other)
    ]
    assert same(found[0]) == same(found[1])


@pytest.mark.parametrize("recipe", ["auto", "dpdf"])
def test_a_class_may_end_in_a_backslash(spark: Any, tmp_path: Path, recipe: str) -> None:
    """Spark would continue a comment on the next line."""
    classes = ["n\\", "m"]
    domain = replace(PAIR, classes=tuple(classes))
    pairs(spark, "slashed", 30)
    given = {"domain": domain, "epsilon": 1, "recipe": recipe, "ledger": tmp_path / "ledger"}
    forest = train(spark, "slashed", **given)
    assert {row["prediction"] for row in forest.predict(spark, "slashed").collect()} <= {*classes}
