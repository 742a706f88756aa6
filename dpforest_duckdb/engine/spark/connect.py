"""Starts a Spark session for the command line, and ends it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from dpforest_duckdb.engine.spark.steps import Session
from dpforest_duckdb.errors import DpforestError

_QUIET = {  # Spark's messages quote data, and its pages show exact counts
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextlib.contextmanager
def opened_session(master: str, remote: str | None) -> Iterator[Session]:
    """A new session of Spark at a master, or one of Spark Connect at a remote address.

    Raises `DpforestError` if pyspark or Java is missing, or the address does not answer.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise DpforestError(
            "Spark is not installed: run pip install 'dpforest-duckdb[spark]'."
        ) from None
    if remote is None and shutil.which("java") is None:
        raise DpforestError("Java is not installed, and Spark needs it: install Java 17 or later.")
    builder = SparkSession.builder
    try:
        if remote is not None:
            session = builder.remote(remote).getOrCreate()
            session.sql("SELECT 1").collect()
        else:
            builder = builder.master(master)
            for key, value in _QUIET.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
    except Exception:
        where = f"--remote {remote}" if remote is not None else f"--master {master}"
        raise DpforestError(f"No Spark session starts with {where}: check it.") from None
    try:
        yield session
    finally:
        with contextlib.suppress(Exception):
            session.stop()
