"""What Spark cannot train on gets no debit, and no budget is hidden, lost or spent for others."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from engine_conformance import DOMAIN, ROWS
from shell import Said, dpforest, refused, run
from spark_tables import PAIR, made, pairs

from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.spark.engine import SparkEngine
from dpforest_duckdb.engine.spark.steps import Steps
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.train import train

# with --dist loadgroup one process runs the tests of these files, with one Spark at a time
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("training on spark")]


def test_what_cannot_be_trained_on_is_refused_without_a_debit(spark: Any, tmp_path: Path) -> None:
    made(spark, "t", ROWS)
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT * FROM t")
    ledger = tmp_path / "ledger"
    given = {"domain": DOMAIN, "epsilon": 1, "recipe": "pinq-id3", "ledger": ledger}
    for change, why in (
        ({"table": "seen"}, "is a view"),
        ({"table": "nowhere"}, "no table"),
        ({"table": tmp_path / "nothing"}, "as Parquet files: check the path"),
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
            rows.encode(Coding(DOMAIN.bind(info.columns), ROW, trees=1, sample="all", salt=1))
    made(spark, "t", ROWS)


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
            run.execute(swapped)
    finally:
        spark.sql("DROP VIEW IF EXISTS decoy" if to == "view" else "DROP TABLE decoy")
