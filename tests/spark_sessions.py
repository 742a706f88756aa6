"""Sessions of Spark for tests, and the domain of a table that Spark and DuckDB both have."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dpforest_duckdb.demo import NURSERY

NURSERY_DOMAIN = {
    "target": "class",
    "column": [
        {"name": column, "kind": "categorical", "domain": list(values)}
        for column, values in NURSERY.items()
    ],
}


def started(master: str, folder: Path, **more: str) -> Any:
    """A Spark of our own, with its catalogue in memory and its tables in a folder of ours."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed (Debian: default-jre-headless)")
    builder = sql.SparkSession.builder.master(master)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "OFF",
        **more,
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
