"""Starts PostgreSQL and MariaDB for the tests: on a socket, never as root, stopped at the end.

Text columns get collations under which 'private', 'PRIVATE' and 'private ' are equal (MariaDB) or
'private' and 'PRIVATE' are (PostgreSQL): the SQL must tell them apart all the same.
"""

from __future__ import annotations

import contextlib
import math
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from runners import Rows


@dataclass(frozen=True)
class Server:
    """A server that runs: `load(file, table)` and `query(sql)`."""

    load: Callable[[str, str], None]
    query: Callable[[str], Rows]

    def run(self, file: str, table: str, sql: str) -> Rows:
        """As the runners of engines without a server do."""
        self.load(file, table)
        return self.query(sql)


_POSTGRES_TYPES = {
    "VARCHAR": 'TEXT COLLATE "any case"',
    "DOUBLE": "DOUBLE PRECISION",
    "FLOAT": "REAL",
    "TINYINT": "SMALLINT",
    "UTINYINT": "SMALLINT",
}
_MARIADB_TYPES = {"VARCHAR": "VARCHAR(100)", "TIMESTAMP": "DATETIME(6)", "UTINYINT": "SMALLINT"}


def program(name: str, *folders: str) -> str:
    """The path of a server's program; without it the test is skipped and says so."""
    found = [shutil.which(name), *(shutil.which(name, path=folder) for folder in folders)]
    path = next(filter(None, found), None)
    if path is None:
        pytest.skip(f"{name} is not installed (Debian: postgresql, mariadb-server)")
    return path


@contextlib.contextmanager
def home(user: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder for a server, and how to start a process as its owner, who is never root."""
    folder = Path(tempfile.mkdtemp(prefix="dpforest-", dir="/tmp"))
    how: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL}
    how["stderr"] = subprocess.DEVNULL
    if os.geteuid() == 0:
        owner = pwd.getpwnam(user)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        how |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    try:
        yield folder, how
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running(command: Sequence[object], how: dict[str, Any], socket: Path) -> Iterator[None]:
    """A server process, from when its socket is there to the end of the block."""
    with subprocess.Popen([*map(str, command)], **how) as server:
        try:
            end = time.monotonic() + 120
            while not socket.exists():
                assert server.poll() is None, "the server stopped at once"
                assert time.monotonic() < end, "the server did not start"
                time.sleep(0.2)
            yield
        finally:
            server.terminate()
            server.wait(60)


@contextlib.contextmanager
def postgres() -> Iterator[Server]:
    """A PostgreSQL of our own."""
    psycopg = pytest.importorskip("psycopg")
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    initdb, server = program("initdb", *folders), program("postgres", *folders)
    with home("postgres") as (folder, how):
        data = folder / "data"
        make = [initdb, "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run([*map(str, make)], check=True, **how)
        start = [server, "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with (
            running(start, how, folder / ".s.PGSQL.5432"),
            _patiently(
                lambda: psycopg.connect(
                    f"host={folder} user=tests dbname=postgres", autocommit=True
                )
            ) as con,
        ):
            con.execute(
                "CREATE COLLATION \"any case\" (provider = icu, locale = 'und-u-ks-level2', "
                "deterministic = false)"
            )
            con.execute("SET jit = off")

            def load(file: str, table: str) -> None:
                names, types, rows = _table(file, lambda value: value)
                columns = ", ".join(
                    f'"{n.replace(chr(34), chr(34) * 2)}" {_POSTGRES_TYPES.get(t, t)}'
                    for n, t in zip(names, types, strict=True)
                )
                con.execute(f"DROP TABLE IF EXISTS {table}")
                con.execute(f"CREATE TABLE {table} ({columns})")
                with con.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
                con.execute(f"ANALYZE {table}")

            yield Server(load, lambda sql: con.execute(sql).fetchall())


@contextlib.contextmanager
def mariadb() -> Iterator[Server]:
    """A MariaDB of our own."""
    pymysql = pytest.importorskip("pymysql")
    install = program("mariadb-install-db", "/usr/bin")
    server = program("mariadbd", "/usr/sbin")
    with home("mysql") as (folder, how):
        data, socket = folder / "data", folder / "socket"
        make = [install, "--no-defaults", f"--datadir={data}", "--skip-test-db"]
        make.append("--auth-root-authentication-method=normal")
        subprocess.run([*map(str, make)], check=True, **how)
        start = [server, "--no-defaults", f"--datadir={data}", f"--socket={socket}"]
        start += ["--skip-networking", f"--pid-file={folder / 'pid'}", f"--tmpdir={folder}"]
        with running(start, how, socket):
            con = _patiently(
                lambda: pymysql.connect(unix_socket=str(socket), user="root", charset="utf8mb4")
            )
            with con, con.cursor() as cursor:
                cursor.execute(
                    "CREATE DATABASE tests CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
                )
                cursor.execute("USE tests")

                def load(file: str, table: str) -> None:
                    names, types, rows = _table(file, _finite)
                    columns = ", ".join(
                        f"`{n.replace('`', '``')}` {_MARIADB_TYPES.get(t, t)}"
                        for n, t in zip(names, types, strict=True)
                    )
                    cursor.execute(f"DROP TABLE IF EXISTS `{table}`")
                    cursor.execute(f"CREATE TABLE `{table}` ({columns})")
                    marks = ", ".join(["%s"] * len(names))
                    cursor.executemany(f"INSERT INTO `{table}` VALUES ({marks})", rows)
                    con.commit()

                def query(sql: str) -> Rows:
                    cursor.execute(sql)
                    return list(cursor.fetchall())

                yield Server(load, query)


def _patiently(connect: Callable[[], Any]) -> Any:
    """A connection, as soon as the server accepts one."""
    for _ in range(100):
        try:
            return connect()
        except Exception:
            time.sleep(0.2)
    return connect()


def _table(file: str, convert: Callable[[Any], Any]) -> tuple[list[str], list[str], Rows]:
    """A file's names, types and rows, with each value converted."""
    with duckdb.connect() as con:
        described = con.execute(f"DESCRIBE FROM '{file}'").fetchall()
        rows = con.execute(f"FROM '{file}'").fetchall()
    types = [row[1] for row in described]
    return [row[0] for row in described], types, [tuple(map(convert, row)) for row in rows]


def _finite(value: Any) -> Any:
    """MySQL has no NaN and no infinity: NULL, and numbers beyond every edge."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else math.copysign(3e38, value)
