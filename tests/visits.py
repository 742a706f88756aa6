"""A table of visits, and runs on it that are ready."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb import prepare

SECRET = "planted-value"  # begins every name in the private table: no output may hold it
DDL = """CREATE TABLE visits (
    who VARCHAR,
    age INTEGER CHECK (age BETWEEN 0 AND 99),
    city ENUM ('Bern', 'Genf', 'Zug'),
    ill BOOLEAN
)"""


def filling(rows: int = 1000, where: str = "") -> str:
    """The statement that makes up rows of the table."""
    return (
        f"INSERT INTO {where}visits SELECT '{SECRET}-' || i // 4, i % 100, "
        f"['Bern', 'Genf', 'Zug'][i % 3 + 1], i % 100 > 60 FROM range({rows}) r(i)"
    )


def visits(con: duckdb.DuckDBPyConnection, rows: int = 1000, where: str = "") -> None:
    con.execute(DDL.replace("TABLE ", f"TABLE {where}"))
    con.execute(filling(rows, where))


def ready(con: duckdb.DuckDBPyConnection, tmp_path: Path, **options: object) -> object:
    settings = {"target": "ill", "epsilon": 1, "ledger": tmp_path / "book", **options}
    return prepare(con, "visits", **settings)  # type: ignore[arg-type]
