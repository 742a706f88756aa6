"""The command line as the tests call it, and a database for it to work on."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import duckdb
from typer import testing
from visits import DDL, SECRET, filling

from dpforest_duckdb.cli import app

PROGRAM = "from dpforest_duckdb.cli import main; main()"
FOREST_KEYS = {"model", "recipe", "epsilon", "delta", "private", "trees", "nodes", "depth"}

# Typer builds all commands for every call, which takes as long as many a command itself
testing._get_command = cache(testing._get_command)

VISITS = (
    DDL,
    filling(),
    "CREATE TABLE fresh AS SELECT * FROM visits USING SAMPLE 1 ROWS (reservoir, 1)",
    "INSERT INTO fresh VALUES (NULL, NULL, NULL, NULL), ('x', 61, 'Zug', true), "
    "('y', 3, NULL, false)",
)


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:
        """The one JSON object on stdout of a command that worked."""
        assert self.code == 0, self.err
        assert self.out.count("\n") == 1, "one line"
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def text(self) -> str:
        """The stdout of a command that worked."""
        assert self.code == 0, self.err
        return self.out


def dpforest(*words: object) -> Said:
    """Run a command in this process."""
    ended = testing.CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    for stream in (ended.stdout, ended.stderr):
        assert SECRET not in stream, "a private value"
        assert "Traceback" not in stream
    return Said(ended.exit_code, ended.stdout, ended.stderr)


def run(*words: object, stdout: Any = subprocess.PIPE, **options: Any) -> Said:
    """Run a command in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
        **options,
    )
    out, err = (ended.stdout or b"").decode(), ended.stderr.decode()
    assert SECRET not in out + err, "a private value"
    assert "Traceback" not in err
    return Said(ended.returncode, out, err)


def train(db: Path, *words: object) -> tuple[object, ...]:
    """A training command on visits."""
    fixed = ("train", "--db", db, "--table", "visits", "--target", "ill")
    return (*fixed, *(() if "--epsilon" in words else ("--epsilon", "1")), *words)


def refused(said: Said, *words: str, code: int = 1) -> str:
    """The one sentence of a refusal, which has all the `words`; stdout stays empty."""
    assert said.code == code, said
    assert said.out == ""
    sentences = [line for line in said.err.splitlines() if line.startswith("Error: ")]
    assert len(sentences) == 1, said.err
    assert said.err.splitlines()[-1] == sentences[0], "the error is the last word"
    for word in words:
        assert word in sentences[0]
    assert "unexpected" not in sentences[0]
    return sentences[0]


def make(database: Path, *statements: str) -> None:
    """Create a database, or change one."""
    with duckdb.connect(str(database)) as con:
        for statement in statements:
            con.execute(statement)


def query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(database)) as con:
        return con.execute(sql).fetchall()


class State:
    """All that a command could change: files beside the database, its ledger, tables and models.

    Two are equal if the bytes are; only where they are not is what they hold read and compared.
    """

    def __init__(self, database: Path) -> None:
        folder = database.parent
        self.files = sorted(entry.name for entry in folder.iterdir())
        self.name, ledger = database.name, Path(f"{database}.ledger")
        self.ledger = ledger.read_bytes() if ledger.exists() else None
        own = (database, Path(f"{database}.wal"))
        self.content = {file.name: file.read_bytes() for file in own if file.exists()}

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, State)
        if (self.files, self.ledger) != (other.files, other.ledger):
            return False
        return self.content == other.content or self.tables == other.tables

    @cached_property
    def tables(self) -> dict[str, Any]:
        """Comment, definition and a digest of the rows of every table, view and macro."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in self.content.items():
                (Path(folder) / name).write_bytes(content)
            return _tables(Path(folder) / self.name)


def state(database: Path) -> State:
    """What a command could change, as it is now."""
    return State(database)


def _tables(database: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with duckdb.connect(str(database)) as con:
        named = con.execute(
            "SELECT schema_name, table_name, comment, sql FROM duckdb_tables() UNION ALL "
            "SELECT schema_name, view_name, comment, sql FROM duckdb_views() WHERE NOT internal "
            "UNION ALL SELECT schema_name, function_name, NULL, macro_definition "
            "FROM duckdb_functions() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        for schema, name, comment, sql in named:
            quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name))
            rows = con.execute(f"SELECT * FROM {quoted} ORDER BY ALL").fetchall()
            digest = hashlib.sha256(repr(rows).encode()).hexdigest()
            found[f"{schema}.{name}"] = (comment, sql, digest)
    return found
