"""Settings of a session or a table in Spark change no count and hide no row, or are refused."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from engine_conformance import DOMAIN, ROWS
from spark_tables import PAIR, TEXT, made, pairs

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.steps import Steps, own_session, refuse_meanings
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.training.train import train

# with --dist loadgroup one process runs the tests of these files, with one Spark at a time
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("training on spark")]


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
                Coding(DOMAIN.bind(info.columns), ROW, trees=1, sample="all", salt=1)
            )
            counts.append(coded.count_classes(0, 1)[0].tolist())
    assert counts[0] == counts[1]


def test_a_catalogue_that_a_session_names_is_in_our_own_too(spark: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.lake", "org.example.Lake")
    assert own_session(session).conf.get("spark.sql.catalog.lake") == "org.example.Lake"


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UTF8_BINARY_RTRIM"])
def test_spellings_of_one_unit_are_in_one_tree(spark: Any, collation: str) -> None:
    if collation.endswith("RTRIM") and spark.version.startswith("4.0."):
        pytest.skip("Spark 4.0 has no collations that ignore spaces at the end")
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
    info = engine.typed(engine.table("spelt"), domain, PrivacyUnit("id"))
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
