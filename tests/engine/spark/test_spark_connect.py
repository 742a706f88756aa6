"""Training through Spark Connect, in a process of its own: Spark itself cannot be in the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from spark_sessions import NURSERY_DOMAIN

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.sql import render
from dpforest_duckdb.training.train import train

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from dpforest_duckdb import train
from dpforest_duckdb.domain.file import domain_from_mapping

spark = SparkSession.builder.remote("local[2]").getOrCreate()
file, domain, ledger = sys.argv[1:]
spark.read.parquet(file).write.saveAsTable("nursery")
forest = train(spark, "nursery", domain=domain_from_mapping(json.loads(domain)), epsilon=1,
               privacy_unit="row", recipe="pinq-id3", seed=7, ledger=ledger)
rows = forest.predict(spark, "nursery").count()
views = [table.name for table in spark.catalog.listTables() if table.name != "nursery"]
print(json.dumps([[tree.votes.tolist() for tree in forest.trees], rows, views]))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.slow  # another Spark
def test_a_forest_through_spark_connect_is_that_of_duckdb(tmp_path: Path) -> None:
    for library in ("pyspark", "grpc", "grpc_status"):
        pytest.importorskip(library, reason="pyspark[connect] is not installed")
    file = tmp_path / "nursery.parquet"
    con = duckdb.connect()
    con.execute(f"CREATE TABLE nursery AS {render('nursery')}")
    con.execute(f"COPY nursery TO '{file}' (FORMAT parquet)")
    words = [str(file), json.dumps(NURSERY_DOMAIN), str(tmp_path / "1")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    same = train(
        con,
        "nursery",
        domain=domain_from_mapping(NURSERY_DOMAIN),
        epsilon=1,
        privacy_unit="row",
        recipe="pinq-id3",
        seed=7,
        ledger=tmp_path / "2",
    )
    votes, rows, views = json.loads(done.stdout.splitlines()[-1])
    assert votes == [tree.votes.tolist() for tree in same.trees]
    assert rows == 12_960
    assert len(views) == 1, "that of the rows to predict"
