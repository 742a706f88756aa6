"""Connections: which tables and databases they open, how statements run, end and fail."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpforest_duckdb.engine.connect import MEMORY, open_database
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.errors import DpforestError


def test_only_base_tables_have_a_budget(con: duckdb.DuckDBPyConnection) -> None:
    engine = DuckDBEngine(con)
    con.execute("CREATE TABLE t (x INTEGER)")
    con.execute("CREATE VIEW v AS FROM t")
    con.execute("CREATE TEMP TABLE w (x INTEGER)")
    con.execute("CREATE SCHEMA s")
    con.execute('CREATE TABLE s."a.b" (x INTEGER)')
    assert engine.table("T").name == "t"
    assert engine.table('s."a.b"').schema == "s"
    for name, sentence in (
        ("v", "is a view"),
        ("w", "temporary"),
        ("nothing", "no table"),
        ("t; DROP TABLE t", "no table"),
    ):
        with pytest.raises(DpforestError, match=sentence):
            engine.table(name)
    con.execute("CREATE TEMP TABLE t (x INTEGER)")
    with pytest.raises(DpforestError, match="hidden by a temporary"):
        engine.table("t")


def test_errors_of_the_database_quote_no_data(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT 'alice@example.com' AS x")
    with pytest.raises(DpforestError) as caught:
        DuckDBEngine(con).run("SELECT CAST(x AS INTEGER) FROM t", step="encode")
    assert "alice" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_new_spill_folder_that_another_run_swept_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = tempfile.mkdtemp

    def swept_once(**given: Any) -> str:
        made.append(make(**given))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept_once)
    with open_database(MEMORY, temp_dir=tmp_path):
        assert [str(path) for path in tmp_path.iterdir()] == made[1:]
    assert not list(tmp_path.iterdir())


def test_errors_of_python_in_a_statement_show_no_value() -> None:
    """As one of DuckDB's extension for SQLite about a text that is no Unicode."""

    def read() -> None:
        b"secret\xff".decode()

    with pytest.raises(DpforestError, match=r"step read \(UnicodeDecodeError\)") as failed:
        DuckDBEngine(duckdb.connect()).call(read, step="read")
    assert "secret" not in str(failed.value)
    assert failed.value.__context__ is None or failed.value.__suppress_context__
