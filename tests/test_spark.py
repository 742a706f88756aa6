"""Training on Spark: what an engine must do, and the same forests as on DuckDB."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pytest
from engine_conformance import COLUMNS, DOMAIN, ROWS, Subject, conforms
from shell import Said, dpforest, refused, run
from spark_sessions import NURSERY_DOMAIN, started

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import BIGINT, VARCHAR
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.exponentials import ONE, exponential, logarithm
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.files import SparkFiles
from dpforest_duckdb.engine.spark.layout import Layout
from dpforest_duckdb.engine.spark.leaves import BITS, Leaves
from dpforest_duckdb.engine.spark.steps import Steps, own_session, refuse_meanings
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners.boosting import random_trees
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.bits import SeededBits
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.opening import find_rows
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.train import train, train_many

# with --dist loadgroup one process starts one Spark for all of them
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("training on spark")]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = started("local[2]", tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


_SQL = {"VARCHAR": "STRING", "INTEGER": "INT"}


def made(spark: Any, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    columns = ", ".join(f"{column} {_SQL[str(kind)]}" for column, kind in COLUMNS.items())
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet")
    added(spark, name, rows)


def added(spark: Any, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    schema = spark.table(name).schema
    spark.createDataFrame([tuple(row) for row in rows], schema).write.insertInto(name)


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
        (tree,) = random_trees(domain, 1, depth, SeededBits(1))
        assert (len(tree.leaves) > 2 * BITS) == (depth == 12)
        leaf = Leaves.of(layout, tree).sql(Sql("0"), dialect.numbers)
        found = rows.selectExpr(f"{leaf} AS leaf").collect()
        assert [row.leaf for row in found] == tree.find(codes).tolist()


def test_what_cannot_be_trained_on_is_refused_without_a_debit(spark: Any, tmp_path: Path) -> None:
    made(spark, "t", ROWS)
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT * FROM t")
    ledger = tmp_path / "ledger"
    given = {"domain": DOMAIN, "epsilon": 1, "recipe": "pinq-id3", "ledger": ledger}
    for change, why in (
        ({"table": "seen"}, "is a view"),
        ({"table": "nowhere"}, "no table"),
        ({"table": tmp_path / "nothing"}, "no Parquet files"),
        ({"privacy_unit": "nobody"}, "no column"),
        ({"name": "m"}, "out"),
        ({"ledger": None}, "ledger"),
    ):
        with pytest.raises(DpforestError, match=why):
            train(spark, **{"table": "t", "privacy_unit": "row", **given, **change})
    assert not ledger.exists()


def test_a_cap_is_set_kept_and_moved_on_the_command_line(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("capped", "t"):
        made(spark, name, ROWS)
    place = "dpforest_duckdb.engine.spark.connect.opened_session"
    monkeypatch.setattr(place, lambda master, remote: nullcontext(spark))
    ledger, out = tmp_path / "ledger", tmp_path / "forest.json"
    shared = ("--engine", "spark", "--ledger", ledger)

    def budget(action: str, *words: object) -> Said:
        return dpforest("budget", action, *words, *shared, "--json")

    def trained(table: str, epsilon: str) -> Said:
        return dpforest(
            *("train", "--table", table, "--target", "label", "--classes", "no,yes"),
            *("--categories", "colour=red,blue", "--privacy-unit", "row"),
            *("--recipe", "pinq-id3", "--epsilon", epsilon, "--out", out, "--replace", *shared),
        )

    assert budget("set", "--table", "capped", "--epsilon", "1").facts["cap"] == 1
    assert "cap" in refused(trained("capped", "1.5"))
    assert not out.exists()
    assert budget("show", "--table", "capped").facts["spent"] == 0
    assert trained("capped", "0.75").code == 0
    assert budget("show", "--table", "capped").facts["left"] == 0.25
    assert "cap" in refused(trained("capped", "0.5"))
    assert "--raise" in refused(budget("set", "--table", "capped", "--epsilon", "2"))
    spark.sql("ALTER TABLE capped RENAME TO renamed")
    assert "cap" in refused(trained("renamed", "0.5"))
    spark.sql("ALTER TABLE renamed UNSET TBLPROPERTIES ('dpforest.budget')")
    assert "is gone" in refused(trained("renamed", "0.1"))
    moved = budget("move", "--table", "default.capped", "--to", "renamed")
    assert moved.facts["left"] == 0.25
    spark.sql("DROP TABLE renamed")
    assert "is gone" in refused(trained("t", "0.1"))
    assert budget("retire", "--table", "default.renamed").code == 0
    assert budget("show", "--table", "t").facts["cap"] is None


def test_a_master_that_does_not_start_is_refused_in_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    said = run(
        *("train", "--engine", "spark", "--master", "nonsense", "--table", "t", "--epsilon", "1"),
        *("--domain", tmp_path / "d.toml", "--out", tmp_path / "forest.json"),
        *("--ledger", tmp_path / "ledger"),
    )
    assert "--master nonsense" in refused(said)
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


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


def test_ctrl_c_cancels_our_jobs_within_two_seconds(
    spark: Any, request: pytest.FixtureRequest
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's cancels all jobs
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    pressed = list[float]()

    def press() -> None:
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.1)
        pressed.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        SparkEngine(spark).steps.rows("SELECT sum(sqrt(id)) FROM range(1000000000000)")
    assert time.monotonic() - pressed[0] < 2
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_no_function_of_the_session_changes_a_count(spark: Any) -> None:
    made(spark, "t", ROWS)
    session = spark.newSession()
    session.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    session.udf.register("array", lambda *cells: [0] * len(cells), "array<int>")
    assert session.sql("SELECT array(1)[0]").collect()[0][0] == 0
    counts = []
    for engine in (SparkEngine(spark), SparkEngine(session)):
        info = engine.table("t")
        with engine.snapshot(info) as rows:
            coded = rows.encode(
                Coding(DOMAIN.bind(info.columns), PrivacyUnit("row"), trees=1, sample="all", salt=1)
            )
            counts.append(coded.count_classes(0, 1)[0].tolist())
    assert counts[0] == counts[1]


def test_a_catalogue_that_a_session_names_is_in_our_own_too(spark: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.lake", "org.example.Lake")
    assert own_session(session).conf.get("spark.sql.catalog.lake") == "org.example.Lake"


def test_a_budget_that_spark_hides_is_not_taken_for_none(spark: Any, tmp_path: Path) -> None:
    made(spark, "t", ROWS)
    given = {"domain": DOMAIN, "privacy_unit": "row", "epsilon": 1, "recipe": "pinq-id3"}
    train(spark, "t", ledger=tmp_path / "ledger", **given)
    hiding = spark.newSession()
    hiding.conf.set("spark.sql.redaction.options.regex", "dpforest")
    with pytest.raises(DpforestError, match="Spark hides"):
        train(hiding, "t", ledger=tmp_path / "other", **given)
    assert not (tmp_path / "other").exists()


def test_a_budget_that_spark_does_not_show_is_not_taken_for_none(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(spark, "t", ROWS)
    rows = Steps.rows

    def withheld(steps: Steps, sql: str, *args: Any, **options: Any) -> Any:
        if sql.startswith("SHOW TBLPROPERTIES"):
            raise DpforestError("no")
        return rows(steps, sql, *args, **options)

    monkeypatch.setattr(Steps, "rows", withheld)
    with pytest.raises(DpforestError, match="does not show"):
        train(
            spark,
            "t",
            domain=DOMAIN,
            privacy_unit="row",
            epsilon=1,
            recipe="pinq-id3",
            ledger=tmp_path / "ledger",
        )
    assert not (tmp_path / "ledger").exists()


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


def test_columns_that_change_after_the_plan_are_not_read(spark: Any) -> None:
    made(spark, "t", ROWS)
    engine = SparkEngine(spark)
    info = engine.table("t")
    with engine.snapshot(info) as rows:
        spark.sql("DROP TABLE t")
        spark.sql(
            "CREATE TABLE t USING parquet AS SELECT 'red' colour, '1' size, 1 who, 'no' label"
        )
        with pytest.raises(DpforestError, match="have changed"):
            rows.encode(
                Coding(DOMAIN.bind(info.columns), PrivacyUnit("row"), trees=1, sample="all", salt=1)
            )
    made(spark, "t", ROWS)


def test_files_that_spark_would_read_twice_are_refused(spark: Any, tmp_path: Path) -> None:
    made(spark, "t", ROWS)
    for name, link in (("hard", os.link), ("soft", os.symlink)):
        folder = tmp_path / name
        spark.table("t").coalesce(1).write.parquet(str(folder))
        (file,) = folder.glob("*.parquet")
        given = {"domain": DOMAIN, "privacy_unit": "row", "epsilon": 1, "recipe": "pinq-id3"}
        run = prepare(spark, folder, ledger=tmp_path / "ledger", **given)
        link(file, folder / "again.parquet")
        with pytest.raises(DpforestError, match="not those of before"):
            run.execute()
        with pytest.raises(DpforestError, match="count twice"):
            prepare(spark, folder, ledger=tmp_path / "ledger", **given)
    assert not (tmp_path / "ledger").exists()


PAIR = domain_from_mapping(
    {
        "target": "y",
        "column": [
            {"name": "a", "kind": "categorical", "domain": ["p", "q"]},
            {"name": "y", "kind": "categorical", "domain": ["n", "m"]},
        ],
    }
)


def read(spark: Any, path: Path, a: dict[str, Any], unit: str = "row") -> Any:
    """The counts by value of "a" and class, after the types are known."""
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [{"name": "a", **a}, label]})
    engine = SparkFiles(spark, path)
    info = engine.typed(engine.table(engine.name), domain, unit)
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


TEXT = {"kind": "categorical", "domain": ["p", "q"]}
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
        info = engine.typed(engine.table("rows"), domain, None)
        with engine.snapshot(info) as snapshot:
            unbounded = PrivacyUnit("row")
            coding = Coding(domain.bind(info.columns), unbounded, trees=1, sample="all", salt=1)
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


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UTF8_BINARY_RTRIM"])
def test_spellings_of_one_unit_are_in_one_tree(spark: Any, collation: str) -> None:
    spark.sql("DROP TABLE IF EXISTS spelt")
    spark.sql(f"CREATE TABLE spelt (id STRING COLLATE {collation}, a STRING, y STRING)")
    ids = [
        f"{'b' if collation.endswith('RTRIM') else 'bB'[i % 2]}ob{' ' * (i % 3)}" for i in range(12)
    ]
    values = ", ".join(
        f"('{each.strip() if 'LCASE' in collation else each}', 'p', 'no')" for each in ids
    )
    spark.sql(f"INSERT INTO spelt VALUES {values}")
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "a", **TEXT},
                {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    engine = SparkEngine(spark)
    info = engine.typed(engine.table("spelt"), domain, "id")
    for salt in range(4):
        with engine.snapshot(info) as snapshot:
            unit = PrivacyUnit("id", 12)
            coding = Coding(domain.bind(info.columns), unit, trees=8, sample="disjoint", salt=salt)
            rows = snapshot.encode(coding).count_leaves(0, 8)[:, 0]
        assert sorted(rows.tolist()) == [0] * 7 + [12]
    spark.sql("DROP TABLE spelt")
    spark.sql(f"CREATE TABLE spelt (id STRUCT<n: STRING COLLATE {collation}>, a STRING, y STRING)")
    with pytest.raises(DpforestError, match="does not compare"):
        engine.refuse_unseen(engine.table("spelt"), ["id"])


def test_an_option_that_spark_hides_is_not_taken_for_none(spark: Any) -> None:
    spark.sql("DROP TABLE IF EXISTS hidden_option")
    spark.sql("CREATE TABLE hidden_option (a STRING) USING csv OPTIONS (multiLine 'true')")
    spark.conf.set("spark.sql.redaction.options.regex", "(?i)url|multi.*")
    try:
        with pytest.raises(DpforestError, match="hides an option"):
            SparkEngine(spark).table("hidden_option")
    finally:
        spark.conf.unset("spark.sql.redaction.options.regex")


def pairs(spark: Any, name: str, rows: int) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} USING parquet AS SELECT IF(id % 2 = 0, 'p', 'q') AS a, "
        f"IF(id % 3 = 0, 'n', 'm') AS y FROM range({rows})"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("USING csv OPTIONS (multiLine 'true')", "the option multiLine"),
        ("USING csv OPTIONS (MULTILINE 'TRUE')", "the option multiLine"),
        ("USING json OPTIONS (multiLine 'true')", "the option multiLine"),
        ("USING csv OPTIONS (mode 'FAILFAST')", "the mode FAILFAST"),
        ("USING xml OPTIONS (rowTag 'row')", "of the kind xml"),
        ("USING parquet OPTIONS (ignoreCorruptFiles 'true')", "ignores corrupt or missing files"),
        ("USING parquet OPTIONS (ignoremissingfiles 'true')", "ignores corrupt or missing files"),
    ],
)
def test_a_table_in_which_a_row_may_hide_others_is_refused(
    spark: Any, options: str, words: str
) -> None:
    spark.sql("DROP TABLE IF EXISTS hiding")
    spark.sql(f"CREATE TABLE hiding (a STRING, y STRING) {options}")
    with pytest.raises(DpforestError, match=words):
        SparkEngine(spark).table("hiding")


def test_a_session_that_ignores_corrupt_files_does_not_hide_rows(spark: Any) -> None:
    settings = [f"spark.sql.files.ignore{what}Files" for what in ("Corrupt", "Missing")]
    for setting in settings:
        spark.conf.set(setting, "true")
    try:
        own = own_session(spark)
        assert [own.conf.get(setting) for setting in settings] == ["false", "false"]
    finally:
        for setting in settings:
            spark.conf.unset(setting)


def test_a_setting_that_cannot_be_replaced_is_refused() -> None:
    class Fixed:
        class conf:  # noqa: N801  a part of a session
            @staticmethod
            def get(key: str, default: str) -> str:
                return "true" if key.endswith("ignoreCorruptFiles") else default

    with pytest.raises(DpforestError, match="ignoreCorruptFiles changes what our SQL means"):
        refuse_meanings(Fixed())


@pytest.mark.parametrize("to", ["table", "view"])
def test_rows_of_another_table_than_was_debited_are_not_read(
    spark: Any, tmp_path: Path, to: str
) -> None:
    """The table gets its name between the look at it and the reading of its rows."""
    pairs(spark, "secret", 300)
    pairs(spark, "decoy", 6)
    spark.sql("DROP TABLE IF EXISTS gone")
    train(spark, "secret", domain=PAIR, epsilon=1, recipe="dpdf", ledger=tmp_path / "ledger")
    run = prepare(spark, "decoy", domain=PAIR, epsilon=1, ledger=tmp_path / "ledger")

    def swapped(event: Event) -> None:
        if event.phase == Phase.COUNT_ROWS:
            spark.sql("ALTER TABLE decoy RENAME TO gone")
            if to == "table":
                spark.sql("ALTER TABLE secret RENAME TO decoy")
            else:
                spark.sql("CREATE VIEW decoy AS SELECT * FROM secret")

    words = "is a view" if to == "view" else "replaced or changed after the debit"
    try:
        with pytest.raises(DpforestError, match=words):
            run.execute(observe=swapped)
    finally:
        spark.sql("DROP VIEW IF EXISTS decoy" if to == "view" else "DROP TABLE decoy")


def test_columns_that_differ_in_case_alone_are_refused(spark: Any) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        spark.sql("DROP TABLE IF EXISTS two")
        spark.sql("CREATE TABLE two (who INT, WHO INT, a STRING, y STRING) USING parquet")
        with pytest.raises(DpforestError, match="differ in the case of letters alone"):
            SparkEngine(spark).table("two")
    finally:
        spark.sql("DROP TABLE two")
        spark.conf.unset("spark.sql.caseSensitive")


def test_errors_of_the_user_are_logged_and_those_of_ours_are_not(
    spark: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """They quote data. pyspark logs them by a class of its own, which takes more arguments."""
    from pyspark.errors import NumberFormatException

    with pytest.raises(DpforestError):
        Steps(spark).rows("SELECT CAST('SECRET' AS INT)")
    assert "SECRET" not in capfd.readouterr().err
    with pytest.raises(NumberFormatException):
        spark.sql("SELECT CAST('SECRET' AS INT)").collect()


def test_a_session_that_reads_words_otherwise_scores_nothing(spark: Any, tmp_path: Path) -> None:
    pairs(spark, "read", 30)
    forest = train(spark, "read", domain=PAIR, epsilon=1, ledger=tmp_path / "ledger")
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        with pytest.raises(DpforestError, match="escapedStringLiterals changes what our SQL means"):
            forest.predict(spark, "read")
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
    assert len(forest.predict(spark, "read").collect()) == 30


@pytest.mark.parametrize("recipe", ["auto", "dpdf"])
def test_a_class_may_end_in_a_backslash(spark: Any, tmp_path: Path, recipe: str) -> None:
    """Spark would continue a comment on the next line."""
    classes = ["n\\", "m"]
    domain = replace(PAIR, classes=tuple(classes))
    pairs(spark, "slashed", 30)
    given = {"domain": domain, "epsilon": 1, "recipe": recipe, "ledger": tmp_path / "ledger"}
    forest = train(spark, "slashed", **given)
    assert {row["prediction"] for row in forest.predict(spark, "slashed").collect()} <= {*classes}
