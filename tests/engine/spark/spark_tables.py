"""Tables of Spark with rows for tests, and domains of such tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine_conformance import COLUMNS

from dpforest_duckdb.domain.file import domain_from_mapping

_SQL = {"VARCHAR": "STRING", "INTEGER": "INT"}


def made(spark: Any, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    columns = ", ".join(f"{column} {_SQL[str(kind)]}" for column, kind in COLUMNS.items())
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet")
    added(spark, name, rows)


def added(spark: Any, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    schema = spark.table(name).schema
    spark.createDataFrame([tuple(row) for row in rows], schema).write.insertInto(name)


PAIR = domain_from_mapping(
    {
        "target": "y",
        "column": [
            {"name": "a", "kind": "categorical", "domain": ["p", "q"]},
            {"name": "y", "kind": "categorical", "domain": ["n", "m"]},
        ],
    }
)
TEXT = {"kind": "categorical", "domain": ["p", "q"]}


def pairs(spark: Any, name: str, rows: int) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(
        f"CREATE TABLE {name} USING parquet AS SELECT IF(id % 2 = 0, 'p', 'q') AS a, "
        f"IF(id % 3 = 0, 'n', 'm') AS y FROM range({rows})"
    )
