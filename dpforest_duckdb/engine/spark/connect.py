"""Starts a Spark session for the command line, and ends it."""

from __future__ import annotations

import contextlib
import os
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
        raise DpforestError("Spark is not installed: run pip install pyspark.") from None
    if remote is None and shutil.which("java") is None:
        raise DpforestError("Java is not installed, and Spark needs it: install Java 17 or later.")
    builder = SparkSession.builder
    try:
        with _no_stderr():
            if remote is not None:
                session = builder.remote(remote).getOrCreate()
                session.sql("SELECT 1").collect()
            else:
                builder = builder.master(master)
                for key, value in _QUIET.items():
                    builder = builder.config(key, value)
                session = builder.getOrCreate()
    except Exception:
        where = f"--master {master}: check it, and that Java is 17 or later"
        if remote is not None:
            where = f"--remote {remote}: check it"
        raise DpforestError(f"Spark does not start with {where}.") from None
    try:
        yield session
    finally:
        with contextlib.suppress(Exception):
            session.stop()


@contextlib.contextmanager
def _no_stderr() -> Iterator[None]:
    """Discard stderr here, and for good in programs that start meanwhile.

    Java's traces would hide our one sentence, and later they could quote data.
    """
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
