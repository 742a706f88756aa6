"""What the tests of data files on the command line share: a folder with files about people."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from visits import SECRET


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two parts of a table as CSV and the whole as Parquet."""
    monkeypatch.chdir(tmp_path)
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE people AS SELECT '{SECRET}-' || i AS who, i % 100 AS age, "
        "['Bern', 'Genf'][i % 2 + 1] AS city, ['no', 'yes'][1 + (i % 100 > 50)::INTEGER] AS ill "
        "FROM range(600) r(i)"
    )
    con.sql("FROM people LIMIT 300").write_csv("part-1.csv")
    con.sql("FROM people OFFSET 300").write_csv("part-2.csv")
    con.table("people").write_parquet("people.parquet")
    Path("loop.csv").symlink_to("loop.csv")
    return tmp_path
