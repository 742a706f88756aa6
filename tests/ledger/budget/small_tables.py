"""Small tables, their accounts, and runs on them that are ready."""

from __future__ import annotations

from typing import Any

import duckdb

from dpforest_duckdb import prepare

DDL = "CREATE TABLE {} (a ENUM ('x', 'y'), k BOOLEAN, who INTEGER)"


def fill(con: duckdb.DuckDBPyConnection, table: str = "t", *, swapped: bool = False) -> None:
    con.execute(DDL.format(table))
    label = "i % 2 = 1" if swapped else "i % 2 = 0"
    con.execute(
        f"INSERT INTO {table} SELECT ['x', 'y'][i % 2 + 1], {label}, i // 3 FROM range(400) r(i)"
    )


def ready(con: duckdb.DuckDBPyConnection, table: str = "t", **options: Any) -> Any:
    return prepare(con, table, **{"target": "k", "epsilon": 1, "recipe": "greedy-tree", **options})
