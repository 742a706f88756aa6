"""Where the command line writes, when the reader, the disk or the stream itself is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from shell import PROGRAM, dpforest, run, train
from variants import some

from dpforest_duckdb.model.forest import load_forest

FULL = Path("/dev/full")


BUFFERED = [{**os.environ, "PYTHONUNBUFFERED": each} for each in ("", "1")]  # "" is none


def buffered_or_not(names: Sequence[str], cases: Iterable[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Parametrize by cases, each with a buffered or an unbuffered stdout by default."""
    both = [(*case, env) for case, env in product(cases, BUFFERED)]
    return some((*names, "env"), both, keep=len(both) // 2)


@buffered_or_not(["words"], [(("sql",),), (("show", "--tree", 0),)])
def test_a_closed_pipe_is_not_an_error(
    db: Path, words: tuple[object, ...], env: dict[str, str]
) -> None:
    """As in `dpforest sql … | head -1`: the pipe is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = run(*words, "--db", db, "--model", "risk", stdout=writing, env=env)
    os.close(writing)
    assert ended.code == 0
    assert "Error" not in ended.err


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@buffered_or_not(["words"], [(("sql", "--model", "risk"),), (("train", "--help"),)])
def test_output_that_cannot_be_written_is_one_sentence(
    db: Path, words: tuple[str, ...], env: dict[str, str]
) -> None:
    with FULL.open("w") as full:
        ended = run(*words, "--db", db, stdout=full, env=env)
    assert ended.code == 1
    assert [line for line in ended.err.splitlines() if line.startswith(("Error", "Trace"))] == [
        "Error: The output cannot be written: check the disk."
    ]


CHECK = "be printed: check the disk."
LOST = f"and paid for; only its summary cannot {CHECK}"


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@buffered_or_not(
    ["words", "sentence", "stored"],
    [
        (("--name", "again", "--json"), f'The model is stored as "again", {LOST}', {"again"}),
        (("--out", "m.json"), f"The model is in m.json, {LOST}", set()),
        (
            ("--name", "one", "--epsilon", "1", "--epsilon", "2"),
            'The models are stored as "one auto 1" and "one auto 2", and paid for; only their '
            f"summary cannot {CHECK}",
            {"one auto 1", "one auto 2"},
        ),
    ],
)
def test_a_summary_that_cannot_be_printed_does_not_look_like_a_failed_run(
    db: Path, tmp_path: Path, words: tuple[str, ...], sentence: str, stored: set[str], env: Any
) -> None:
    """What was paid for is there, and the user must not pay for it again."""
    with FULL.open("w") as full:
        ended = run(*train(db, *words), stdout=full, env=env, cwd=tmp_path)
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == f"Error: {sentence}"
    listed = dpforest("models", "--db", db, "--json").facts["models"]
    assert {each["model"] for each in listed} == {"risk", *stored}
    assert stored or load_forest(tmp_path / "m.json").private


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("env", [BUFFERED[0], pytest.param(BUFFERED[1], marks=pytest.mark.more)])
def test_figures_that_cannot_be_printed_are_said_to_be_paid_for(
    db: Path, env: dict[str, str]
) -> None:
    words = ("evaluate", "--db", db, "--model", "risk", "--table", "visits", "--epsilon", "1")
    with FULL.open("w") as full:
        ended = run(*words, stdout=full, env=env)
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == f"Error: The figures are paid for, but cannot {CHECK}"


def silent(*words: object, stderr: int) -> tuple[int, bytes]:
    """Exit code and stdout of a command whose notes have nowhere to go."""
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, check=False, timeout=60)
    return ended.returncode, ended.stdout


def test_notes_that_nobody_reads_do_not_stop_a_run(db: Path) -> None:
    """As in `dpforest train … 2>&1 >model.json | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    code, out = silent(*train(db, "--name", "again", "--json", "--show-sql"), stderr=writing)
    os.close(writing)
    assert code == 0
    assert b'"model": "again"' in out
    assert dpforest("models", "show", "again", "--db", db).code == 0


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.more
def test_notes_that_do_not_fit_do_not_stop_a_run(db: Path) -> None:
    with FULL.open("w") as full:
        code, out = silent(*train(db, "--name", "again", "--json"), stderr=full.fileno())
        assert (code, b'"model": "again"' in out) == (0, True)
        assert silent("models", "show", "zzz", "--db", db, stderr=full.fileno()) == (1, b"")


def closed(stream: int, *words: object) -> subprocess.CompletedProcess[bytes]:
    """A command that is started without one of its streams, as by `>&-` in a shell."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {stream}>&-', "sh", sys.executable, "-c", PROGRAM]
        + [str(word) for word in words],
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.more
def test_a_closed_stream_is_not_replaced_by_the_other(db: Path) -> None:
    words = ("evaluate", "--db", db, "--model", "risk", "--table", "fresh", "--json")
    spoken = dpforest(*words)
    assert spoken.err
    without_notes = closed(2, *words)
    assert without_notes.returncode == 0
    assert without_notes.stdout.decode() == spoken.out
    without_result = closed(1, *words)
    assert without_result.returncode == 0
    assert without_result.stderr.decode() == spoken.err


def test_output_is_utf_8_in_any_locale(db: Path) -> None:
    ended = run("models", "show", "risk", "--db", db, env={**os.environ, "LC_ALL": "C"})
    assert "ε = 1" in ended.text
