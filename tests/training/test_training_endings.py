"""What an interrupted or killed run leaves behind, or one that cannot store its forest."""

from __future__ import annotations

import contextlib
import gc
import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shell import dpforest, train
from variants import some
from visits import ready, visits

import dpforest_duckdb
from dpforest_duckdb import DpforestError, prepare, stored_forest
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.connection.connect import open_database
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.engine.tables.models import DuckDBModels
from dpforest_duckdb.ledger.entries import Closing
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import load_forest
from dpforest_duckdb.model.json_format import fingerprint
from dpforest_duckdb.model.store import NotStoredError
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.progress import Phase


@pytest.mark.parametrize("recipe", ["auto", "greedy-tree", "dpdf"])
def test_ctrl_c_in_an_open_transaction_is_still_ctrl_c(
    con: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
) -> None:
    """The interrupt aborts the transaction, in which no table can be dropped."""

    def interrupted(rows: DuckDBRows, first: int, nodes: int) -> None:
        with contextlib.suppress(duckdb.Error):
            rows._stored.cursor.execute("SELECT error('interrupted')")
        raise KeyboardInterrupt

    for count in ("count_classes", "count_leaves"):
        monkeypatch.setattr(DuckDBRows, count, interrupted)
    visits(con)
    run = ready(con, tmp_path, recipe=recipe)
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    assert con.execute("FROM duckdb_tables() WHERE temporary").fetchall() == []


KILLED = """
import os, signal, duckdb, sys
from dpforest_duckdb import prepare
from dpforest_duckdb.engine.connection.connect import open_database
with open_database(sys.argv[1]) as con:
    run = prepare(con, "visits", target="ill", epsilon=1, recipe="dpdf", name="risk")
    run.execute(lambda m: os.kill(os.getpid(), signal.SIGKILL) if sys.argv[2] in m else None)
"""


@some(
    ("moment", "spent"),
    [
        ("debiting", 0),
        ("encoding", NANO),
        ("depth 1", NANO),
        ("finishing", NANO),
        ("storing", NANO),
    ],
    keep=2,
)
def test_a_killed_run_leaves_a_debit_and_no_model(tmp_path: Path, moment: str, spent: int) -> None:
    database = tmp_path / "data.duckdb"
    with duckdb.connect(str(database)) as con:
        visits(con)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(database), moment], check=False)
    assert ended.returncode == -9
    with open_database(database) as con:
        run = prepare(con, "visits", target="ill", epsilon=1, name="risk")
        assert run.account.budget().spent_epsilon == spent
        assert run.engine.models.names() == []
        assert con.execute("SELECT count(*) FROM visits").fetchone() == (1000,)
        left = [p.name for p in tmp_path.iterdir() if "spill" in p.name]
        assert len(left) == 1, "what the dead run spilled was swept"
    assert not [p.name for p in tmp_path.iterdir() if "spill" in p.name]


def full(*_: object, **__: object) -> None:
    raise DpforestError("The disk is full.")


def test_threads_can_store_their_first_models_at_the_same_time() -> None:
    """DuckDB refuses all but one of the transactions that make the schema of the models."""
    con = duckdb.connect()
    start = threading.Barrier(8)

    def store_one(cursor: duckdb.DuckDBPyConnection) -> None:
        models = DuckDBEngine(cursor).models
        start.wait()
        models.write(f"m{threading.get_ident()}", "{}")

    with ThreadPoolExecutor(8) as pool:
        for stored in [pool.submit(store_one, con.cursor()) for _ in range(8)]:
            stored.result()
    assert len(DuckDBEngine(con).models.names()) == 8


def test_a_forest_that_cannot_be_stored_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file under a free name, and in the error; its run counts as done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DuckDBModels, "write", full)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS a, i % 2 = 0 AS y FROM range(9) r(i)")
        for name in ("t.json", "t 2.json"):
            run = prepare(con, "t", target="y", epsilon=1, name="t")
            with pytest.raises(
                NotStoredError, match=f"disk is full.* kept in the file .*/{name}:"
            ) as caught:
                run.execute()
            assert load_forest(tmp_path / name).to_json() == caught.value.forest.to_json()
        monkeypatch.setattr(store, "write_file", full)
        with pytest.raises(NotStoredError, match="attribute `forest`") as caught:
            prepare(con, "t", target="y", epsilon=1, name="t").execute()
        assert caught.value.forest.private
        assert [entry.state for entry in run.account.budget().entries] == ["done"] * 3


@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
@pytest.mark.parametrize(("seed", "hashes"), [(None, 1), (1, 0)], ids=["private", "seeded"])
def test_a_run_interrupted_while_it_stores_its_forest_is_done(
    con: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int | None,
    hashes: int,
) -> None:
    """The forest may be stored by then: the ledger must know it, if it is private."""
    write = DuckDBModels.write

    def interrupted(*given: Any, **named: Any) -> None:
        write(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(DuckDBModels, "write", interrupted)
    visits(con)
    run = ready(con, tmp_path, recipe="dpdf", name="risk", seed=seed)
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    chain, made = run.account.ledger.read(), fingerprint(stored_forest(con, "risk"))
    (closing,) = (entry for entry in chain.entries if isinstance(entry, Closing))
    assert (closing.state, closing.forest) == ("done", made * hashes)
    assert run.account.budget().spent_epsilon == NANO


@pytest.mark.parametrize(
    ("error", "state"), [(KeyboardInterrupt, "interrupted"), (DpforestError, "failed")]
)
def test_a_run_that_ends_before_its_forest_is_finished_is_not_done(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, error: type[BaseException], state: str
) -> None:
    def stop(step: str) -> None:
        if step == Phase.FINISH:
            raise error("Stop.")

    visits(con)
    run = ready(con, tmp_path, recipe="dpdf", name="risk")
    with pytest.raises(error):
        run.execute(stop)
    assert run.account.ledger.read().entries[-1].state == state
    assert run.account.budget().spent_epsilon == NANO


@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_cannot_be_written_loses_no_forest(
    tmp_path: Path, db: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpforest_duckdb.model.files.write_file", full)
    words = ("--name", "new") if named else ()
    said = dpforest(*train(db, "--out", tmp_path / "m.json", *words))
    assert said.code == 1
    if named:
        assert 'The disk is full. The model is stored as "new".' in said.err
        assert dpforest("show", "--db", db, "--model", "new").code == 0
    else:
        assert load_forest(tmp_path / "visits.json").private


@pytest.mark.parametrize("name", ["risk", "no\nname"], ids=["trained", "refused"])
def test_a_run_keeps_no_reference_to_the_connection(tmp_path: Path, name: str) -> None:
    """Else it would stay open, and the database locked, until Python looks for cycles."""
    con = duckdb.connect(tmp_path / "clinic.duckdb")
    visits(con, rows=50)
    kept = weakref.ref(con)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(DpforestError):
            dpforest_duckdb.train(con, "visits", target="ill", epsilon=1, recipe="dpdf", name=name)
        with contextlib.suppress(DpforestError):
            DuckDBEngine(con).call(failing)
        del con
        assert kept() is None
    finally:
        gc.enable()


def failing() -> None:
    raise DpforestError("An error that is not DuckDB's.")


@some("stop", [signal.SIGTERM, signal.SIGHUP], keep=1)
def test_a_signal_ends_a_command_as_ctrl_c_does(db: Path, stop: signal.Signals) -> None:
    words = [*map(str, train(db, "--name", "stopped"))]
    command = [sys.executable, "-c", STOPPED.format(stop=int(stop)), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 130, done.stderr
    assert "Interrupted" in done.stderr


STOPPED = """
import os, signal, sys
from dpforest_duckdb.cli import main
from dpforest_duckdb.training.run import Run
signal.signal({stop}, signal.SIG_DFL)  # which nohup ignores
Run.execute_on = lambda *_: os.kill(os.getpid(), {stop}) or signal.pause()
sys.argv[0] = "dpforest"
main()
"""
