"""Locks, read-only files, full disks and Ctrl-C leave a debit at most, and no half of a model."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shell import PROGRAM, Said, dpforest, make, query, refused, run, state, train

from dpforest_duckdb import load_forest
from dpforest_duckdb.cli import exit_codes, written_files
from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.training.run import Run


def test_a_database_that_another_process_holds(db: Path) -> None:
    before = state(db)
    program = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); "
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        for verb in (train(db, "--name", "new"), ("models", "--db", db)):
            refused(dpforest(*verb), str(db), f"in use by process {holder.pid}: close it there")
    finally:
        holder.kill()
        holder.communicate()
    assert state(db) == before


def plainly(*words: object) -> Said:
    """A command by a user who is not root."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_without_privilege, *words).result()


def _without_privilege(*words: object) -> Said:
    """Root ignores file modes. A thread without two of its capabilities (Linux) does not, nor do
    the threads that it starts; it cannot get them back.
    """
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
        held = (ctypes.c_uint32 * 6)()
        if not hasattr(libc, "capget") or libc.capget(header, held) != 0:
            pytest.skip("root's right to write read-only files cannot be given up here")
        for kind in (0, 1):  # effective and permitted: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            held[kind] &= ~0b110
        assert libc.capset(header, held) == 0
    return dpforest(*words)


def test_a_read_only_database(db: Path, tmp_path: Path) -> None:
    db.chmod(0o444)
    before, out = state(db), tmp_path / "m.json"
    model = ("--db", db, "--model", "risk")
    refused(plainly(*train(db, "--name", "new")), "read-only", "--out")
    refused(
        plainly("score", *model, "--table", "fresh", "--into", "s"), "read-only", "dpforest sql"
    )
    cap = ("budget", "set", "--db", db, "--table", "visits", "--epsilon", "4")
    refused(plainly(*cap), "make its file and folder writable")
    refused(plainly("models", "drop", "risk", "--db", db), "read-only", "writable")
    assert state(db) == before
    said = plainly(*train(db, "--out", out))
    assert said.code == 0, "the model goes to a file"
    assert 'Warning: The database of table "visits" is read-only, so only the ledger' in said.err
    assert dpforest("budget", "--db", db, "--table", "visits", "--json").facts["spent"] == 2
    assert load_forest(out).private


def test_a_read_only_folder(db: Path, tmp_path: Path) -> None:
    ledger, out = Path(f"{db}.ledger"), tmp_path / "m.json"
    before = state(db)
    for path, mode in ((db, 0o444), (ledger, 0o444), (db.parent, 0o555)):
        path.chmod(mode)
    refused(plainly(*train(db, "--out", db.parent / "m.json")), "cannot be written", "--out")
    refused(plainly(*train(db, "--out", out)), "ledger", "writable")
    assert not out.exists()
    assert state(db) == before
    db.parent.chmod(0o755)


def test_a_full_disk_before_the_debit(db: Path) -> None:
    """No file can grow, as a limit that only this process has."""

    def nothing_fits() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    before = state(db)
    said = run(*train(db, "--name", "new"), preexec_fn=nothing_fits)
    refused(said, "ledger", "disk")
    assert state(db) == before


@pytest.fixture
def small_disk(db: Path) -> Iterator[Path]:
    """A database on a disk of its own, of 8 MB."""
    disk = db.parent.parent / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted here, so no disk can be filled")
    try:
        for file in db.parent.iterdir():
            shutil.copy(file, disk)
        yield disk / db.name
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_after_the_debit(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has room, the model does not: the debit stays, there is no half of a model, and
    the whole one is kept elsewhere.
    """
    db, filler = small_disk, small_disk.parent / "filler"
    long = ", ".join(f"'{number:0300}'" for number in range(300))  # every model holds its domain
    make(db, f"ALTER TABLE visits ADD COLUMN long ENUM ({long})")
    wide, out = train(db, "--depth", "1"), db.parent / "m.json"

    def filled() -> None:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        os.truncate(filler, filler.stat().st_size - 60_000)

    filled()
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    refused(dpforest(*wide, "--out", out), "m.json", "because the disk is full", "visits.json")
    assert sorted(file.name for file in db.parent.iterdir() if "m.json" in file.name) == []
    filler.unlink()
    filled()
    refused(dpforest(*wide, "--name", "new"), "DuckDB could not", "the disk is full", "new.json")
    filler.unlink()
    ((comment,),) = query(db, "SELECT comment FROM duckdb_tables() WHERE table_name = 'visits'")
    make(db, f"COMMENT ON TABLE visits IS '{'x' * 80_000}\n{comment}'")  # is written again
    filled()
    refused(dpforest(*wide, "--name", "new"), "DuckDB could not", "disk")
    filler.unlink()
    budget = dpforest("budget", "--db", db, "--table", "visits", "--json").facts
    assert budget["spent"] == 4
    assert [entry["state"] for entry in budget["entries"]] == [
        *("done", "done", "done", "failed")  # two were trained, and are kept elsewhere
    ]
    for name in ("visits", "new"):
        assert load_forest(folder / f"{name}.json").private
    models = dpforest("models", "--db", db, "--json").facts["models"]
    assert [model["model"] for model in models] == ["risk"]
    assert query(db, "SELECT count(*) FROM visits") == [(1000,)]


def test_a_file_that_another_process_made_meanwhile_stays(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there when the run began; both models are paid for, and both are kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(written_files, "check_out", lambda *_, **__: None)
    out, other = tmp_path / "m.json", '{"schema":"dpforest/1 of another process"'
    out.write_text(other)
    said = dpforest(*train(db, "--out", out))
    refused(said, "There is a file", "m.json already", "paid for", "visits.json")
    assert out.read_text() == other
    assert load_forest("visits.json").private
    assert dpforest(*train(db, "--out", out, "--replace")).code == 0
    assert load_forest(out).private


def test_ctrl_c_leaves_only_the_debit(db: Path) -> None:
    make(
        db,
        "INSERT INTO visits SELECT 'x' || i, i % 100, 'Bern', i % 7 = 0 FROM range(100_000) r(i)",
    )
    before = state(db)
    words = train(db, "--name", "new", "--recipe", "greedy-tree", "--trees", "200", "--depth", "8")
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    ledger = Path(f"{db}.ledger")
    end = time.monotonic() + 30
    while ledger.read_bytes() == before.ledger and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)  # somewhere in the level loop
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert out == b""
    assert err.decode().splitlines()[-1] == (
        "Interrupted: nothing is half-written. The debit stays: see dpforest budget."
    )
    assert b"Traceback" not in err
    after = state(db)
    budget = dpforest("budget", "--db", db, "--table", "visits", "--json").facts
    assert budget["spent"] == 2
    assert budget["entries"][-1]["state"] == "interrupted"
    assert after.files == before.files, "no spill is left"
    assert after.tables["dpforest.models"] == before.tables["dpforest.models"]
    assert after.tables["main.visits"][1:] == before.tables["main.visits"][1:]


def test_ctrl_c_in_a_later_run_names_the_models_before_it(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are paid for, and the same command would pay again."""
    executed = Run.execute_on

    def interrupted(run: Run, *of: Any) -> Forest:
        if run.name == "new auto 0.3":
            raise KeyboardInterrupt
        return executed(run, *of)

    monkeypatch.setattr(Run, "execute_on", interrupted)
    several = ("--epsilon", "0.2", "--epsilon", "0.3", "--epsilon", "0.4")
    said = dpforest(*train(db, "--name", "new", *several))
    assert said.code == 130
    stored = 'Stored and paid for: "new auto 0.2". Left: "new auto 0.3" and "new auto 0.4"; train'
    assert stored in said.err
    assert "Interrupted" in said.err.splitlines()[-1]
    listed = dpforest("models", "--db", db).out
    assert "new auto 0.2" in listed
    assert "new auto 0.3" not in listed


def test_a_signal_waits_until_duckdb_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception within that import can abort the process, instead of exit code 130."""
    spec, sent = SimpleNamespace(_initializing=True), list[int]()
    monkeypatch.setitem(sys.modules, "duckdb", SimpleNamespace(__spec__=spec))
    monkeypatch.setattr(exit_codes, "_interrupted", [])
    monkeypatch.setattr(signal, "raise_signal", sent.append)
    exit_codes.interrupt(signal.SIGTERM, None)
    end = time.monotonic() + 30
    while not sent and time.monotonic() < end:
        time.sleep(0.01)
    assert sent == [signal.SIGTERM]
    spec._initializing = False
    with pytest.raises(KeyboardInterrupt):
        exit_codes.interrupt(signal.SIGTERM, None)


def test_a_signal_that_a_library_swallowed_stops_before_the_debit(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing DuckDB can lose the exception that a signal raises."""
    monkeypatch.setattr(exit_codes, "_interrupted", [])
    with contextlib.suppress(KeyboardInterrupt):
        exit_codes.interrupt(signal.SIGTERM, None)
    before = state(db)
    evaluating = ("evaluate", "--db", db, "--model", "risk", "--table", "visits", "--epsilon", "1")
    for verb in (train(db, "--name", "new"), evaluating):
        said = dpforest(*verb)
        assert said.code == 130
        assert said.err.splitlines()[-1] == (
            "Interrupted: nothing is half-written. If a run was debited, that stays spent: see "
            "dpforest budget."
        )
    assert state(db) == before


def test_ctrl_c_after_the_debit_says_what_may_be_spent_whatever_a_library_makes_of_it(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB raises a RuntimeError if a signal ends a query of the main thread."""

    def pressed(*of: object, **more: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            exit_codes.interrupt(signal.SIGINT, None)
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(exit_codes, "_interrupted", [])
    monkeypatch.setattr(DuckDBSnapshot, "encode", pressed)
    before = state(db)
    said = dpforest(*train(db, "--name", "new"))
    assert said.code == 130
    assert said.err.splitlines()[-1].endswith(exit_codes.MAY_STAY)
    assert state(db) != before


def test_ctrl_c_in_a_verb_that_debits_nothing_says_nothing_about_debits(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*of: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "load", interrupted)
    said = dpforest("sql", "--db", db, "--model", "risk", "--from", "visits")
    assert said.code == 130
    assert said.err == "Interrupted: nothing is half-written.\n"
