"""DuckDB is an engine as `engine_conformance` has it; macros and settings do not change that."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from engine_conformance import ROWS, Subject, bound, conforms
from variants import some

from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.tables import snapshot
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.unit import ROW

# each of them would change a statement that found it; a table macro is written out whole
MACROS = {
    "floor": "floor(x) AS x * 1000",
    "modulo": '"%"(a, b) AS 0',
    "plus": '"+"(a, b) AS 7',
    "divide": '"/"(a, b) AS 7',
    "times": '"*"(a, b) AS 1',
    "less": '"-"(a, b) AS 7',
    "shift": '">>"(a, b) AS 0',
    "mask": '"&"(a, b) AS 0',
    "count_star": "count_star() AS 77",
    "range": "range(x) AS TABLE SELECT unnest([0, 0, 0]) AS range",
    "hash": "hash(a, b) AS 1",
    "sum": "sum(x) AS 77",
    "min": "min(x) AS 1",
    "lag": "lag(a, b) AS 1",
}


def subject(con: duckdb.DuckDBPyConnection, where: str = "") -> Subject:
    con.execute(f"CREATE TABLE {where}t (colour VARCHAR, size INTEGER, who INTEGER, label VARCHAR)")
    insert = f"INSERT INTO {where}t VALUES (?, ?, ?, ?)"

    def add(rows: Sequence[tuple[object, ...]]) -> None:
        con.executemany(insert, [list(row) for row in rows])

    add(ROWS)
    return Subject(DuckDBEngine(con), add)


def test_duckdb_conforms(con: duckdb.DuckDBPyConnection) -> None:
    conforms(subject(con))


def test_duckdb_conforms_in_another_database_and_schema(tmp_path: Path) -> None:
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{tmp_path / 'b.duckdb'}' AS \"my data.1\"")
        con.execute('CREATE SCHEMA "my data.1"."a ""b"""')
        con.execute('USE "my data.1"."a ""b"""')
        conforms(subject(con))


def test_macros_of_the_database_change_nothing(con: duckdb.DuckDBPyConnection) -> None:
    """All at once; the test below shows that each alone would change something."""
    made = subject(con)
    for macro in MACROS.values():
        con.execute(f"CREATE MACRO {macro}")
    conforms(made)


@some("macro", MACROS, keep=4)
def test_each_macro_would_change_what_the_users_search_path_reads(
    con: duckdb.DuckDBPyConnection, macro: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault that the test above would catch: a connection without a search path of its own."""
    made = subject(con)
    con.execute(f"CREATE MACRO {MACROS[macro]}")
    monkeypatch.setattr(snapshot, "new_cursor", lambda statements: con.cursor())
    with pytest.raises((AssertionError, DpforestError, IndexError, ValueError)):
        conforms(made)


def test_a_temporary_macro_changes_nothing(con: duckdb.DuckDBPyConnection) -> None:
    made = subject(con)
    con.execute(f"CREATE TEMP MACRO {MACROS['floor']}")
    con.execute(f"CREATE TEMP MACRO {MACROS['modulo']}")
    conforms(made)


def test_the_users_connection_stays_as_it_was(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE SCHEMA s")
    con.execute("USE s")
    asked = "SELECT current_setting('search_path'), current_schema(), current_database()"
    before = con.execute(asked).fetchall()
    conforms(subject(con))
    assert con.execute(asked).fetchall() == before
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]


def test_a_snapshot_is_of_one_moment_while_others_write(con: duckdb.DuckDBPyConnection) -> None:
    """A writer commits all the time: a snapshot's readings agree all the same."""
    made = subject(con)
    info, stop = made.engine.table("t"), threading.Event()
    coding = Coding(bound(info), ROW, trees=1, sample="all", salt=1)

    def write() -> None:
        own = con.cursor()
        while not stop.wait(0.002):
            own.execute("INSERT INTO t VALUES ('red', 1, 1, 'yes')")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(10):
            with made.engine.snapshot(info) as rows:
                counts = [rows.encode(coding).count_leaves(0, 1) for _ in range(3)]
            assert (counts[0] == counts[1]).all()
            assert (counts[0] == counts[2]).all()
    finally:
        stop.set()
        writer.join()
