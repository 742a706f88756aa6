"""Training on Spark when processes die: executors in the middle of a run, and the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shell import PROGRAM, dpforest
from spark_sessions import NURSERY_DOMAIN, started

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.sql import render
from dpforest_duckdb.training.train import train

pytestmark = pytest.mark.spark
COUNTED = "-- Count the rows of each class, by node"


@pytest.fixture
def nursery(tmp_path: Path) -> Path:
    file = tmp_path / "nursery.parquet"
    duckdb.execute(f"COPY ({render('nursery')}) TO '{file}' (FORMAT parquet)")
    return file


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """Two executors, which are processes of their own."""
    session = started("local-cluster[2,1,1024]", tmp_path)
    yield session
    session.stop()


@pytest.mark.slow  # half a minute, most of it to start three processes of Java
def test_an_executor_killed_in_a_run_and_a_changed_source_change_nothing(
    cluster: Any, nursery: Path, tmp_path: Path
) -> None:
    given = {
        "domain": domain_from_mapping(NURSERY_DOMAIN),
        "privacy_unit": "row",
        "epsilon": 3,
        "recipe": "pinq-id3",
        "seed": 7,
    }
    cluster.read.parquet(str(nursery)).repartition(4).write.saveAsTable("nursery")
    killed = list[str]()

    def kill_and_change(statement: str) -> None:
        if not killed and statement.startswith(COUNTED):
            cluster.sql(f"INSERT OVERWRITE nursery SELECT * FROM parquet.`{nursery}` LIMIT 10")
            executors = executors_of(cluster)
            assert len(executors) == 2
            executors[0].destroyForcibly()
            killed.append(statement)

    found = train(cluster, "nursery", ledger=tmp_path / "1", trace=kill_and_change, **given)
    assert killed
    assert cluster.table("nursery").count() == 10
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE nursery AS FROM '{nursery}'")
        same = train(con, "nursery", ledger=tmp_path / "2", **given)
    assert [tree.votes.tolist() for tree in found.trees] == [t.votes.tolist() for t in same.trees]


def executors_of(session: Any) -> list[Any]:
    """The executors' processes, which the driver's Java has started."""
    children = session._jvm.java.lang.ProcessHandle.current().children().toArray()
    return [c for c in children if "CoarseGrainedExecutor" in c.info().commandLine().orElse("")]


def test_a_killed_driver_leaves_a_debit_and_no_model(nursery: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    domain, ledger, out = (tmp_path / name for name in ("domain.toml", "ledger", "forest.json"))
    lines = ['target = "class"']
    for column in NURSERY_DOMAIN["column"]:
        lines += ["[[column]]", *(f"{key} = {json.dumps(value)}" for key, value in column.items())]
    domain.write_text("\n".join(lines), encoding="utf-8")
    words = ["train", "--engine", "spark", "--master", "local[2]", "--db", str(nursery)]
    words += ["--domain", str(domain), "--privacy-unit", "row", "--epsilon", "1"]
    words += ["--recipe", "pinq-id3", "--ledger", str(ledger), "--out", str(out), "--show-sql"]
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert running.stderr
    for line in running.stderr:
        if line.startswith(COUNTED):
            break
    running.kill()
    assert running.wait() == -9
    assert not out.exists()
    found = dpforest("budget", "show", "--db", str(nursery), "--ledger", str(ledger), "--json")
    assert found.facts["spent"] == 1
