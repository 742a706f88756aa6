"""Spark from the command line where it is missing or not meant; these tests start none."""

from __future__ import annotations

import shutil
import sys
from types import SimpleNamespace

import pytest
from shell import dpforest, refused

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import BIGINT, INTEGER
from dpforest_duckdb.engine.spark.connect import opened_session
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.steps import is_session, plain_error
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.codes import SparkCodes


def test_missing_pyspark_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(DpforestError, match="pip install pyspark"):
        opened_session("local[1]", None).__enter__()


def test_missing_java_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(DpforestError, match="Java is not installed"):
        opened_session("local[1]", None).__enter__()


@pytest.mark.parametrize("module", ["pyspark.errors", "pyarrow.lib"])
def test_errors_of_spark_lose_their_text(module: str) -> None:
    error = type("SparkError", (Exception,), {"__module__": module})("'a secret value'")
    found = plain_error(error, "encode")
    assert isinstance(found, DpforestError)
    assert "step encode" in str(found)
    assert "secret" not in str(found)
    assert not is_session(object())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--engine", "flink"), "--engine is duckdb or spark"),
        (("--master", "local[1]"), "--master goes with --engine spark"),
        (("--engine", "spark"), "Name a table of Spark with --table"),
        (("--engine", "spark", "--table", "t", "--name", "m"), "--name"),
        (("--engine", "spark", "--table", "t"), "--out"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: tuple[str, ...], why: str) -> None:
    said = dpforest("train", "--epsilon", "1", *words)
    assert why in refused(said, code=2)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--master", "local[1]"), "--master goes with --engine spark"),
        (("--engine", "spark"), "Name the table of Spark with --table"),
        (("--engine", "spark", "--table", "t"), "--ledger"),
        (("--engine", "spark", "--db", "rows.parquet"), "leave --engine out"),
    ],
)
def test_options_that_do_not_fit_a_budget_in_spark_are_refused(
    words: tuple[str, ...], why: str
) -> None:
    assert why in refused(dpforest("budget", "show", *words), code=2)


def test_what_cannot_be_written_in_sql_is_refused_before_the_debit() -> None:
    context = SimpleNamespace(addJobTag=print, cancelJobsWithTag=print)
    engine = SparkEngine(SimpleNamespace(sparkContext=context))
    with pytest.raises(DpforestError, match="Spark replaces"):
        engine.refuse_unseen(TableInfo("", "", "t", {"a${b}": INTEGER}))
    large = str(2**64)  # beyond BIGINT, a literal of Spark is a DECIMAL
    assert SparkCodes().literal(large, BIGINT.family) == large
