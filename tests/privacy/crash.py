"""Trainings that kill themselves at a chosen step or moment, and checks of what they leave."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shell import make, query, train

from dpforest_duckdb.cli import main
from dpforest_duckdb.engine.connection.connect import open_database
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.model.forest import load_forest
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.training.prepare import prepare

# Trainings are copies of one process that has imported everything, so each starts at once.
WARM = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
WARM.set_forkserver_preload(["crash", "dpforest_duckdb.training.train"])


def _killed_at(point: int, first: str, log: Path, words: list[str]) -> None:
    """The command line, which kills itself by SIGKILL at its point-th step; 0 kills nothing.

    A step is a statement of DuckDB, before and after it runs; one of the ledger's, before; or what
    is done to a file. The name of each is written to the log. Steps are counted from the first that
    is called `first`, or from the start if that is empty.
    """
    names = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    seen = 0

    def step(name: str) -> None:
        nonlocal seen
        seen += bool(seen) or first in ("", name)
        os.write(names, f"{name}\n".encode())
        if seen == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner: Any, method: str, named: Callable[..., str]) -> None:
        original = getattr(owner, method)

        def wrapped(*args: Any, **options: Any) -> Any:
            name = named(*args, **options)
            step(f"before {name}")
            outcome = original(*args, **options)
            step(f"after {name}")
            return outcome

        setattr(owner, method, wrapped)

    around(DuckDBEngine, "run", lambda _, sql, *a, step="", **o: step or sql.split()[0].lower())
    around(os, "fsync", lambda *a: "sync")
    around(Path, "replace", lambda *a: "rename")
    around(Path, "hardlink_to", lambda *a: "rename")  # a name for a file that is complete
    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(lambda sql: step("ledger " + sql.split()[0].lower()))
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]
    sys.argv = ["dpforest", *words]
    main()


READS = "before encode"  # from here on private rows may have been read


@dataclass(frozen=True)
class Ending:
    """What a training that died left behind."""

    steps: tuple[str, ...]
    finished: bool
    spent: int
    stored: bool
    written: bool
    left: tuple[str, ...]

    @property
    def at(self) -> str:
        return "end" if self.finished else self.steps[-1] if self.steps else "start"


def crashed(
    home: Path, into: Path, *, point: int = 0, first: str = "", after: float | None = None
) -> Ending:
    """Train on a copy of a home, killed at the point-th step from `first` on, or `after` seconds;
    then look.

    How many steps a training has depends on its noise, so name the step where one is meant.

    What is found is checked: the ledger follows from itself, a model has its debit, a debit comes
    before the first private row, a file is whole or not there, rows are as they were, and the next
    run works and sweeps what the dead one spilled.
    """
    shutil.copytree(home, into)
    db, out, log = into / "clinic.duckdb", into / "new.json", into / "steps"
    before = _spent(db)
    rows = query(db, "SELECT count(*), hash(string_agg(visits::VARCHAR, '')) FROM visits")
    words = [str(w) for w in train(db, "--name", "new", "--out", out, "--depth", "2")]
    process = WARM.Process(target=_killed_at, args=(point, first, log, words))
    process.start()
    if after is not None:
        time.sleep(after)
        process.kill()
    process.join(timeout=120)
    code = process.exitcode
    assert code in (0, -signal.SIGKILL), code
    steps = tuple(log.read_text().splitlines()) if log.exists() else ()
    spent = _spent(db) - before
    assert spent in (0, NANO)
    assert spent == NANO or READS not in steps, "rows were read without a debit"
    stored = bool(query(db, "SELECT name FROM dpforest.models WHERE name = 'new'"))
    if out.exists():
        assert load_forest(out).private, "whole"
    assert spent == NANO or not (stored or out.exists()), "a model without its debit"
    assert query(db, "SELECT count(*), hash(string_agg(visits::VARCHAR, '')) FROM visits") == rows
    with open_database(db) as con:
        again = prepare(con, "visits", target="ill", epsilon=1, name="next")
        assert again.execute().private
        assert again.account.budget().spent_epsilon == before + spent + NANO
    left = tuple(sorted(p.name for p in into.iterdir() if p.name.startswith(".")))
    assert not [name for name in left if "spill" in name], "the next run sweeps the spill"
    return Ending(steps, code == 0, spent, stored, out.exists(), left)


def _spent(db: Path) -> int:
    """What was spent on the table, in nano-ε, after a check of the ledger's chain."""
    with open_database(db, read_only=True) as con:
        return prepare(con, "visits", target="ill", epsilon=1).account.budget().spent_epsilon


def home(folder: Path) -> Path:
    """A folder with a database of private rows and a first model, to be copied."""
    from shell import VISITS

    folder.mkdir()
    make(folder / "clinic.duckdb", *VISITS)
    with open_database(folder / "clinic.duckdb") as con:
        prepare(con, "visits", target="ill", epsilon=1, name="risk").execute()
    return folder
