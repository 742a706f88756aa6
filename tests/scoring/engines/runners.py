"""Runs scoring SQL in an engine: each function loads a Parquet file as a table and gives rows.

They run in processes of their own (see `conftest.py`), because some engines crash beside others.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb

Rows = list[tuple[Any, ...]]
Run = Callable[..., Rows]  # a runner and its arguments


def run_duckdb(file: str, table: str, sql: str) -> Rows:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE {table} AS FROM '{file}'")
        return con.execute(sql).fetchall()


def run_sqlite(file: str, table: str, sql: str) -> Rows:
    with sqlite3.connect(":memory:") as con:
        load_sqlite(con, file, table)
        return con.execute(sql).fetchall()


def load_sqlite(con: sqlite3.Connection, file: str, table: str) -> None:
    """Columns of text ignore case by declaration, which must change nothing."""
    with duckdb.connect() as source:
        names, types, rows = _plain(source, file)
    columns = ", ".join(
        '"' + n.replace('"', '""') + '" ' + _SQLITE.get(t.split("(")[0], "REAL")
        for n, t in zip(names, types, strict=True)
    )
    con.execute(f"CREATE TABLE {table} ({columns})")
    marks = ", ".join("?" * len(names))
    con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def run_datafusion(file: str, table: str, sql: str) -> Rows:
    import datafusion

    context = datafusion.SessionContext()
    context.register_parquet(table, file)
    return _tuples(context.sql(sql).to_arrow_table())


def run_polars(file: str, table: str, sql: str) -> Rows:
    import polars

    context = polars.SQLContext({table: polars.scan_parquet(file)})
    return context.execute(sql, eager=True).rows()


def run_clickhouse(file: str, table: str, sql: str) -> Rows:
    """If the SQL is longer than ClickHouse takes by default, the limit is raised first."""
    import chdb

    raised = f"SET max_query_size = {2 * len(sql.encode())}; " if len(sql.encode()) > 2**18 else ""
    scored = sql.replace(f"`{table}`", f"file('{file}', Parquet)")
    return _tuples(chdb.query(raised + scored, "ArrowTable"))


_SQLITE = {
    "VARCHAR": "TEXT COLLATE NOCASE",
    "DATE": "TEXT",
    "TIMESTAMP": "TEXT",
    **dict.fromkeys(("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "INTEGER"),
}


def _plain(con: duckdb.DuckDBPyConnection, file: str) -> tuple[list[str], list[str], Rows]:
    """A file's names, types and rows, with dates as text and NaN as NULL."""
    described = con.execute(f"DESCRIBE FROM '{file}'").fetchall()
    rows = [tuple(map(_plain_value, row)) for row in con.execute(f"FROM '{file}'").fetchall()]
    return [d[0] for d in described], [d[1] for d in described], rows


def _plain_value(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, bool | int | float | str | None):
        return value
    return float(value) if hasattr(value, "as_tuple") else str(value)


def _tuples(table: Any) -> Rows:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@cache
def spark_session() -> Any:
    """A Spark of our own on this machine, until the process ends."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run_spark(file: str, table: str, sql: str) -> Rows:
    spark_session().read.parquet(file).createOrReplaceTempView(table)
    return [tuple(row) for row in spark_session().sql(sql).collect()]
