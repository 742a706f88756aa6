"""Connections: which tables and databases they open, how statements run, end and fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpforest_duckdb import DpforestError, UsageError
from dpforest_duckdb.engine.connection.connect import MEMORY, open_database
from dpforest_duckdb.engine.tables.engine import DuckDBEngine


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


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(duckdb).values() if type(kind) is type and issubclass(kind, Exception)],
)
def test_no_error_of_the_database_keeps_its_message(
    con: duckdb.DuckDBPyConnection, kind: type[Exception]
) -> None:
    def fails() -> None:
        raise kind("Could not write file of alice@example.com")

    with pytest.raises((DpforestError, KeyboardInterrupt)) as caught:
        DuckDBEngine(con).call(fails, step="encode")
    assert "alice" not in str(caught.value)


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


def home_of(path: Path) -> Path:
    duckdb.connect(str(path)).close()
    return path


def test_ctrl_c_stops_the_query_and_leaves_nothing(con: duckdb.DuckDBPyConnection) -> None:
    engine = DuckDBEngine(con)
    interrupter = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    interrupter.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine.run(
            "CREATE TABLE half AS SELECT sum(a.i * b.i) FROM range(1000000) a(i), "
            "range(1000000) b(i)",
            step="test",
        )
    assert time.monotonic() - started < 10
    assert engine.run("SELECT count(*) FROM duckdb_tables()") == [(0,)]


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_while_a_task_is_handed_over_leaves_nothing_at_work(
    con: duckdb.DuckDBPyConnection, begun: bool
) -> None:
    """A task that outlives the call would use a connection that is being closed."""
    engine, at_work, late = DuckDBEngine(con), threading.Event(), list[Callable[[], bool]]()
    tasks = engine._tasks

    class Interrupted:
        def put(self, task: Callable[[], bool]) -> None:
            if begun:
                tasks.put(task)
                at_work.wait()
            else:
                late.append(task)
            raise KeyboardInterrupt

    def work() -> None:
        at_work.set()
        con.execute("SELECT sum(a.i * b.i) FROM range(1000000) a(i), range(1000000) b(i)")

    engine._tasks = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        engine.call(work)
    for task in late:  # it may begin after the call has ended, and must do nothing then
        assert task()
    assert at_work.is_set() == begun
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_the_thread_of_statements_ends_with_them(con: duckdb.DuckDBPyConnection) -> None:
    before = set(threading.enumerate())
    engine = DuckDBEngine(con)
    assert engine.run("SELECT 1") == [(1,)]
    (thread,) = set(threading.enumerate()) - before
    del engine
    thread.join(10)
    assert not thread.is_alive()


def test_statements_get_another_thread_if_theirs_has_ended(con: duckdb.DuckDBPyConnection) -> None:
    """As in the child of a fork."""
    engine = DuckDBEngine(con)
    engine._tasks.put(bool)
    engine._worker.join(10)
    assert not engine._worker.is_alive()
    assert engine.run("SELECT 1") == [(1,)]


def test_a_statement_may_be_run_while_another_is(con: duckdb.DuckDBPyConnection) -> None:
    engine, cursor = DuckDBEngine(con), con.cursor()
    assert engine.call(lambda: engine.run("SELECT 1", on=cursor)) == [(1,)]


def test_a_connection_that_another_thread_is_using_is_refused(
    con: duckdb.DuckDBPyConnection,
) -> None:
    started, finished = threading.Event(), threading.Event()

    def hold() -> int:
        started.set()
        finished.wait(60)
        return 1

    con.create_function("hold", hold, [], "INTEGER")
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: con.execute("SELECT hold()").fetchall())
        started.wait(60)
        try:
            with pytest.raises(UsageError, match=r"give each thread a con\.cursor\(\)"):
                DuckDBEngine(con).run("SELECT 1")
        finally:
            finished.set()
    assert other.result() == [(1,)]


def test_our_own_database_is_locked_down(tmp_path: Path) -> None:
    with open_database(home_of(tmp_path / "d.duckdb")) as con:
        for statement in (
            "SET enable_external_access = true",
            "SET threads = 1",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            f"SELECT * FROM read_csv('{__file__}')",
        ):
            with pytest.raises(duckdb.Error):
                con.execute(statement)


def test_databases_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "not.duckdb").write_text("no database")
    for name, sentence in (("missing.duckdb", "no database file"), ("not.duckdb", "cannot be")):
        with pytest.raises(DpforestError, match=sentence), open_database(tmp_path / name):
            pass
    path = home_of(tmp_path / "d.duckdb")
    for options in ({"memory_limit": "a lot"}, {"threads": 0}, {"temp_dir": tmp_path / "no"}):
        with pytest.raises(DpforestError, match=r"temp_|DuckDB"), open_database(path, **options):
            pass
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print(1, "
            "flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        with pytest.raises(DpforestError, match="in use"), open_database(path):
            pass
    finally:
        holder.kill()
        holder.wait()
