"""How a verb ends: exit 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import typer

from dpforest_duckdb.cli.output import say, warn
from dpforest_duckdb.errors import (
    DpforestError,
    NotPrivateWarning,
    UnanchoredWarning,
    UnrecordedWarning,
    UsageError,
    one_line,
)

MAY_STAY = "If a run was debited, that stays spent: see dpforest budget."
OFTEN_VARIABLES = {
    "source": "--from",
    "temp_dir": "--temp-dir",
    "privacy_unit": "--privacy-unit",
    **{name: f"--{name}" for name in ("db", "domain", "ledger", "out", "dataset", "into")},
}
SHOWN = (
    NotPrivateWarning,
    UnanchoredWarning,
    UnrecordedWarning,
)  # of the warnings; a verb prints others itself


_interrupted: list[int] = []  # the signals that asked this process to end


def interrupt(number: int, frame: object) -> None:
    """A signal's handler, as Python's own for Ctrl-C. It also keeps that the signal came.

    While DuckDB is imported, an exception may abort the process. Then the signal comes again later.
    """
    _interrupted.append(number)
    loading = getattr(sys.modules.get("duckdb"), "__spec__", None)
    if getattr(loading, "_initializing", False):
        again = threading.Timer(0.05, signal.raise_signal, [number])
        again.daemon = True
        again.start()
        return
    raise KeyboardInterrupt


def stop_if_interrupted() -> None:
    """Stop if a signal came: importing a library can swallow the interruption."""
    if _interrupted:
        raise KeyboardInterrupt


@contextlib.contextmanager
def printing(lost: str) -> Iterator[None]:
    """Run a block that prints. If printing fails, the error says `lost`.

    So nobody takes a run that is paid for as failed.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        error.add_note(lost)
        raise


def debiting(verb: Callable[..., None]) -> Callable[..., None]:
    """Wrap a verb that debits runs: a note of Ctrl-C says what it may have spent."""

    @functools.wraps(verb)
    def run(**options: Any) -> None:
        try:
            verb(**options)
        except (KeyboardInterrupt, Exception) as error:
            stopped = _interruption(error)
            if stopped is None:
                raise
            if not getattr(stopped, "__notes__", ()):
                stopped.add_note(MAY_STAY)
            raise stopped from None

    return run


def _interruption(error: BaseException) -> KeyboardInterrupt | None:
    """The error as an interruption, if it is one, or if a library such as DuckDB raised another
    error because of one; else None.
    """
    if isinstance(error, KeyboardInterrupt):
        return error
    ours = isinstance(error, DpforestError | OSError)
    return KeyboardInterrupt() if _interrupted and not ours else None


def reported(verb: Callable[..., None]) -> Callable[..., None]:
    """Wrap a verb: an error becomes one sentence on stderr and the matching exit code."""

    @functools.wraps(verb)
    def run(**options: Any) -> None:
        with warnings.catch_warnings():
            for category in SHOWN:
                warnings.simplefilter("always", category)
            warnings.showwarning = _warn
            code = _exit_code(functools.partial(_checked, verb, **options))
        if code:
            raise typer.Exit(code)

    return run


def _checked(verb: Callable[..., None], **options: Any) -> None:
    """Run the verb; refuse text that is empty, as an unset variable leaves it, or not UTF-8."""
    for name, value in options.items():
        if value == "" and name in OFTEN_VARIABLES:
            raise UsageError(f"{OFTEN_VARIABLES[name]} is empty: give it a value, or leave it out.")
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and not word.isascii():
                try:
                    word.encode()
                except UnicodeEncodeError:
                    raise UsageError(f'"{word}" is not UTF-8 text: spell it differently.') from None
    verb(**options)


def _exit_code(verb: Callable[[], None]) -> int:
    try:
        verb()
        sys.stdout.flush()  # a closed pipe fails here, not at the interpreter's exit
    except (DpforestError, KeyboardInterrupt, OSError) as error:
        return ended_by(error)
    except Exception as error:
        if stopped := _interruption(error):
            return ended_by(stopped)
        if os.environ.get("DPFOREST_DEBUG") == "1":
            traceback.print_exc()
        # the class alone: the text of a foreign exception can quote data
        say(
            f"Error: unexpected {type(error).__name__}; DPFOREST_DEBUG=1 shows where, "
            "and can show data."
        )
        return 1
    return 0


def ended_by(error: BaseException) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, OSError) and error.filename is not None:
        say(f"Error: {error.filename} cannot be used: {error.strerror}.")
        return 1
    if isinstance(error, OSError):  # of stdout, which has no file name
        # the rest of the buffer would fail again at the interpreter's exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0  # the reader closed the pipe
        lost = next(iter(getattr(error, "__notes__", ())), "The output cannot be written")
        say(f"Error: {lost}: check the disk.")
        return 1
    if isinstance(error, KeyboardInterrupt):
        spent = getattr(error, "__notes__", [])[:1]
        say(" ".join(["Interrupted: nothing is half-written.", *spent]))
        return 130
    say(f"Error: {error.sentence if isinstance(error, DpforestError) else error}")
    return 2 if isinstance(error, UsageError) else 1


def _warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    if issubclass(category, SHOWN):
        warn(one_line(message))
