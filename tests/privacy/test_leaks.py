"""After a run nothing true is found anywhere: values, counts, the salt, the seed."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from variants import some

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError, NotPrivateWarning, PlainSpillWarning
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run

ROWS = 876_543
PLANTED = "planted-value"
SEED = 887_766_554_433_221
PRIVATE = (
    "CREATE TABLE t (name VARCHAR, x INTEGER CHECK (x BETWEEN 0 AND 1), "
    "z INTEGER CHECK (z BETWEEN 0 AND 99), y BOOLEAN)",
    f"INSERT INTO t SELECT '{PLANTED}-' || i, i % 2, i % 100, i < 765439 FROM range({ROWS}) r(i)",
)
TRUE = (
    "SELECT count(*) FROM t UNION SELECT count(*) FROM t GROUP BY y UNION "
    "SELECT count(*) FROM t GROUP BY x UNION SELECT count(*) FROM t GROUP BY x, y"
)
# a run in a process of its own, whose whole output is searched; it says what it would not have said
CHILD = """
import json, logging, sys
import duckdb
from dpforest_duckdb.training.prepare import prepare

logging.basicConfig(level=logging.DEBUG)
home, private, recipe, delta, secrets = sys.argv[1:]
trees = 8 if recipe == "boosted" else None
with duckdb.connect(home) as con:
    con.execute("SET memory_limit = '60MB'")
    con.execute("PRAGMA disable_checkpoint_on_shutdown")
    con.execute(f"ATTACH '{private}' AS private")
    run = prepare(con, "private.t", target="y", epsilon="0.001", delta=delta, recipe=recipe,
                  trees=trees, name="m", trace=lambda sql: print(sql, file=sys.stderr))
    with open(secrets, "w") as file:
        json.dump([str(run.randomness.salt)], file)
    forest = run.execute(progress=print)
    assert con.execute("FROM duckdb_tables() WHERE temporary").fetchall() == []
    print(repr(forest), repr(run), forest.to_json(), forest.to_sql("t"), forest.rules())
    forest.predict(con, "private.t").limit(0).show()
"""


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A database of private rows, and the true counts that nobody may see."""
    file = tmp_path_factory.mktemp("private") / "private.duckdb"
    with duckdb.connect(str(file)) as con:
        for statement in PRIVATE:
            con.execute(statement)
        return file, {str(count) for (count,) in con.execute(TRUE).fetchall()}


def written(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every byte below a folder, and the rows of its databases as text: their pages compress."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield file.name, file.read_bytes()
    for file in folder.glob("*.ledger"):
        with contextlib.closing(sqlite3.connect(file)) as con:
            yield f"rows of {file.name}", "\n".join(con.iterdump()).encode()
    for file in folder.glob("*.duckdb"):
        with duckdb.connect(str(file)) as con:
            for schema, table, note in con.execute(
                "SELECT schema_name, table_name, comment FROM duckdb_tables()"
            ).fetchall():
                rows = con.execute(f'FROM "{schema}"."{table}"').fetchall()
                yield f"rows of {table}", f"{note} {rows}".encode()


def leaks(where: str, content: bytes, numbers: set[str]) -> list[str]:
    """What of the planted values and of the numbers, as text or as 8 bytes, is in some content."""
    found = [f"{PLANTED} in {where}"] if PLANTED.encode() in content else []
    for number in numbers:
        text = re.search(rb"(?<!\d)" + number.encode() + rb"(?!\d)", content)
        stored = int(number).to_bytes(8, "little") in content
        if text or stored:
            found.append(f"a number in {where}")
    return found


def test_the_search_finds_what_is_there() -> None:
    assert leaks("x", f"a {PLANTED}-7".encode(), set())
    assert leaks("x", b'{"n":765432}', {"765432"})
    assert leaks("x", (765432).to_bytes(8, "little"), {"765432"})
    assert not leaks("x", b"17654321", {"765432"})


@some(
    ("recipe", "delta"),
    [
        ("auto", "0"),
        ("boosted", "1e-5"),
        pytest.param("auto", "1e-5", marks=pytest.mark.slow),
        ("greedy-tree", "0"),
        ("thesis-forest", "0"),
        ("dpdf", "0"),
    ],
    keep=2,
)
def test_a_run_leaves_nothing_true(
    private: tuple[Path, set[str]], tmp_path: Path, recipe: str, delta: str
) -> None:
    """It searches files, write-ahead log, spill, ledger, model, statements, output and logs."""
    found = searched(*private, tmp_path / "one", recipe, delta)
    if found:  # one of many noisy figures may be a true one by chance, not twice
        again = searched(*private, tmp_path / "other", recipe, delta)
        assert not again, found + again


def searched(database: Path, true: set[str], folder: Path, recipe: str, delta: str) -> list[str]:
    """What a run in a process of its own leaks, with a ledger of its own."""
    home, secrets = folder / "home", folder / "secrets"
    home.mkdir(parents=True)
    database = Path(shutil.copy(database, folder / "private.duckdb"))
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, home / "home.duckdb", database, recipe, delta, secrets],
        capture_output=True,
        check=True,
        cwd=home,
        env={**os.environ, "TMPDIR": str(home)},
    )
    numbers = true | set(json.loads(secrets.read_text()))
    assert (home / "home.duckdb.wal").stat().st_size > 0, "the log is searched too"
    assert b"CREATE TEMP TABLE" in ran.stderr
    assert b'"schema"' in ran.stdout
    ledger = Path(f"{database}.ledger")  # of an attached table: beside its own database
    places = [*written(home), ("stdout", ran.stdout), ("stderr", ran.stderr)]
    places.append(("ledger", ledger.read_bytes()))
    left = {path.name for path in home.rglob("*") if path.is_file()}
    assert left <= {"home.duckdb", "home.duckdb.wal"}, "no spill is left"
    return [leak for place in places for leak in leaks(*place, numbers)]


class Failing(DuckDBEngine):
    """An engine whose n-th statement fails with a message that quotes data."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, at: int) -> None:
        super().__init__(connection)
        self.left = at
        self.failed = ""

    def run(self, sql: str, values: Any = None, **options: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            self.failed = sql
            sql = f"SELECT CAST('{PLANTED}-765432' AS INTEGER)"
            values = None
        return super().run(sql, values, **options)


@some("recipe", ["auto", "greedy-tree"], keep=1)
def test_no_failure_of_the_database_shows_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    """Every statement of a run fails once; the whole traceback is searched, causes included."""
    monkeypatch.chdir(tmp_path)  # a model that cannot be stored is written to the present folder
    logging.getLogger().setLevel(logging.DEBUG)
    failed = 0
    with duckdb.connect() as con:
        for at in range(1, 60):
            con.execute(
                "CREATE OR REPLACE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 9), y BOOLEAN)"
            )
            con.execute("INSERT INTO t SELECT i % 10, i % 10 > 4 FROM range(500) r(i)")
            run = prepare(con, "t", target="y", epsilon=1, recipe=recipe, name=f"m{at}",
                          depth=2, ledger=tmp_path / f"l{at}")  # fmt: skip
            engine = Failing(con, at)
            object.__setattr__(run, "engine", engine)
            object.__setattr__(run.account, "engine", engine)
            try:
                run.execute()
            except DpforestError as error:
                failed += 1
                said = "".join(traceback.format_exception(error, chain=True))
                assert PLANTED not in said
                assert str(run.randomness.salt) not in said
                left = con.execute(
                    "SELECT table_name FROM duckdb_tables() WHERE temporary"
                ).fetchall()
                assert not left or engine.failed.startswith("DROP")
                for (name,) in left:
                    con.execute(f'DROP TABLE temp."{name}"')
            if engine.left > 0:
                break
    assert failed > 8, "each statement failed once"


def test_the_seed_is_in_no_output(tmp_path: Path) -> None:
    """The seed reveals the noise, so it is not in the model, its SQL or the ledger."""
    home = tmp_path / "home.duckdb"
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "x", "kind": "numeric", "lower": 0, "upper": 9},
                {"name": "y", "kind": "categorical", "domain": ["false", "true"]},
            ],
        }
    )
    with (
        duckdb.connect(str(home)) as con,
        warnings.catch_warnings(action="ignore", category=NotPrivateWarning),
    ):
        con.execute("CREATE TABLE t AS SELECT i % 10 AS x, i % 10 > 4 AS y FROM range(500) r(i)")
        run: Run = prepare(con, "t", domain=domain, epsilon=1, seed=SEED, name="m")
        forest = run.execute()
        shown = forest.to_json() + forest.to_sql("t") + repr(forest) + repr(run)
    salt = str(run.randomness.salt)
    assert leaks("what is shown", shown.encode(), {str(SEED), salt}) == []
    for place in written(tmp_path):
        assert leaks(*place, {str(SEED), salt}) == []


@pytest.mark.parametrize("spills_plain", [True, False])
def test_a_warning_where_an_encrypted_database_would_spill_in_plain(
    tmp_path: Path, spills_plain: bool
) -> None:
    with duckdb.connect() as con:
        try:
            con.execute("SET force_mbedtls_unsafe = 'true'")
            con.execute(f"ATTACH '{tmp_path / 'e.duckdb'}' AS e (ENCRYPTION_KEY 'only a test')")
            con.execute(f"SET temp_file_encryption = {not spills_plain}")
        except duckdb.Error:
            pytest.skip("this build of DuckDB cannot encrypt")
        con.execute("CREATE TABLE e.t (x INTEGER CHECK (x BETWEEN 0 AND 9), y BOOLEAN)")
        con.execute("INSERT INTO e.t SELECT i % 10, i % 10 > 4 FROM range(500) r(i)")
        with warnings.catch_warnings(record=True, action="always") as caught:
            forest = prepare(con, "e.t", target="y", epsilon=1).execute()
        assert forest.private
        sentences = [str(one.message) for one in caught if one.category is PlainSpillWarning]
        assert len(sentences) == spills_plain
        assert all("temp_file_encryption" in sentence for sentence in sentences)


@pytest.mark.parametrize("more", [f"'{PLANTED}', ", ""])
def test_a_model_has_no_labels_of_an_enum_that_its_domain_does_not_list(
    more: str, tmp_path: Path
) -> None:
    """An ENUM may be made from the rows, and so may the order of its labels; the target's type is
    one of the classes alone then.
    """
    listed = {"name": "x", "kind": "categorical", "domain": ["u", "v"]}
    label = {"name": "y", "kind": "categorical", "domain": ["yes", "it's no"]}
    domain = domain_from_mapping({"target": "y", "column": [listed, label]})
    with duckdb.connect() as con:
        con.execute(f"CREATE TYPE x AS ENUM ('v', {more}'u')")
        con.execute(f"CREATE TYPE y AS ENUM ({more}'it''s no', 'yes')")
        con.execute("CREATE TABLE t (x x, y y)")
        con.execute(
            "INSERT INTO t SELECT 'uv'[1 + i % 2], ['yes', 'it''s no'][1 + i % 2] "
            "FROM range(99) r(i)"
        )
        run = prepare(con, "t", domain=domain, epsilon=50, ledger=tmp_path / "ledger")
        forest = run.execute()
        assert PLANTED not in forest.to_json() + forest.to_sql("t") + forest.to_sql("t", fast=True)
        assert forest.domain.target_type.name == "ENUM('yes', 'it''s no')"
        assert "'v'" not in forest.to_json(), "the type of the attribute is text"
        assert type(forest).from_json(forest.to_json()).to_json() == forest.to_json()
        right = forest.predict(con, "t").filter("prediction = y").count("*").fetchall()
        assert right == [(99,)]
