"""Training on tables of Hive's metastore, which keeps the budget between sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shell import dpforest
from spark_sessions import NURSERY_DOMAIN, started

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.errors import BudgetError
from dpforest_duckdb.sql import render
from dpforest_duckdb.training.train import train

pytestmark = pytest.mark.spark


@pytest.fixture
def hive(tmp_path: Path) -> Iterator[Any]:
    """A Spark whose catalogue is a metastore of our own, in Derby."""
    place = f"jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true"
    session = started(
        "local[2]",
        tmp_path,
        **{
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": place,
        },
    )
    session._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "log"))
    yield session
    session.stop()


@pytest.mark.slow  # half a minute, much of it to start a metastore
def test_a_partitioned_table_of_hive_is_trained_on_within_its_cap(
    hive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "nursery.parquet"
    con = duckdb.connect()
    con.execute(f"CREATE TABLE nursery AS {render('nursery')}")
    con.execute(f"COPY nursery TO '{file}' (FORMAT parquet)")
    *others, health = (
        f"`{column['name']}`" for column in NURSERY_DOMAIN["column"] if column["name"] != "class"
    )
    typed = ", ".join(f"{name} STRING" for name in (*others, "class"))
    hive.sql(f"CREATE TABLE nursery ({typed}) PARTITIONED BY ({health} STRING) STORED AS ORC")
    hive.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    hive.sql(
        f"INSERT INTO nursery SELECT {', '.join(others)}, class, {health} FROM parquet.`{file}`"
    )
    given = {
        "domain": domain_from_mapping(NURSERY_DOMAIN),
        "privacy_unit": "row",
        "epsilon": 1,
        "recipe": "pinq-id3",
    }
    ledger = tmp_path / "ledger"
    found = train(hive, "nursery", seed=7, ledger=ledger, **given)
    same = train(con, "nursery", seed=7, ledger=tmp_path / "other", **given)
    assert [tree.votes.tolist() for tree in found.trees] == [t.votes.tolist() for t in same.trees]

    hive.sql("CREATE TABLE capped LIKE nursery")
    with monkeypatch.context() as patch:
        place = "dpforest_duckdb.engine.spark.connect.opened_session"
        patch.setattr(place, lambda master, remote: nullcontext(hive))
        words = ("--engine", "spark", "--table", "capped", "--epsilon", "0.5", "--ledger", ledger)
        assert dpforest("budget", "set", *words).code == 0
    later = hive.newSession()  # the metastore keeps the properties of tables
    later.sql("ALTER TABLE capped RENAME TO renamed")
    with pytest.raises(BudgetError):
        train(later, "renamed", ledger=ledger, **given)
