"""A table of visits, and runs on it that are ready."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb import prepare

DDL = """CREATE TABLE visits (
    who VARCHAR,
    age INTEGER CHECK (age BETWEEN 0 AND 99),
    city ENUM ('Bern', 'Genf', 'Zug'),
    ill BOOLEAN
)"""


def visits(con: duckdb.DuckDBPyConnection, rows: int = 1000, where: str = "") -> None:
    con.execute(DDL.replace("TABLE ", f"TABLE {where}"))
    con.execute(
        f"INSERT INTO {where}visits SELECT 'secret-' || i // 4, i % 100, "
        f"['Bern', 'Genf', 'Zug'][i % 3 + 1], i % 100 > 60 FROM range({rows}) r(i)"
    )


def ready(con: duckdb.DuckDBPyConnection, tmp_path: Path, **options: object) -> object:
    settings = {"target": "ill", "epsilon": 1, "ledger": tmp_path / "book", **options}
    return prepare(con, "visits", **settings)  # type: ignore[arg-type]
