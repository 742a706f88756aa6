"""Progress on the terminal, and the time of each step for the curator."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from dpforest_duckdb.cli.output import say, warn

if TYPE_CHECKING:
    from dpforest_duckdb.progress import Event


@contextlib.contextmanager
def shown_progress(*, timings: bool) -> Iterator[Callable[[Event], None]]:
    """An observer that shows each step on a terminal, and nothing if stderr is a file.

    With `timings` it also shows the time of the current phase and an estimate of the rest, and
    lists the time of every step at the end. Times depend on private rows, so they are shown only on
    request.
    """
    marks: list[tuple[str, float]] = []
    with shown_status("planning") as show:

        def observe(event: Event) -> None:
            now = time.perf_counter()
            marks.append((event, now))
            show(f"{event}{_times(event, marks, now)}" if timings else event)

        yield observe
    if timings:
        _list_times([*marks, ("", time.perf_counter())])


@contextlib.contextmanager
def shown_status(step: str) -> Iterator[Callable[[str], None]]:
    """Show a step on a terminal until the block ends, and nothing if stderr is a file.

    Gives a function that shows another step in its place.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True, markup=False).status(step) as status:
        yield status.update


def _times(event: Event, marks: list[tuple[str, float]], now: float) -> str:
    """The time so far, and the time left if later steps take as long as earlier ones."""
    text = f", {now - marks[0][1]:.0f} s"
    if event.step > 1:
        started = next(start for step, start in marks if step.startswith(event.phase))
        left = (now - started) / (event.step - 1) * (event.steps - event.step + 1)
        text += f", {left:.0f} s left"
    return text


def _list_times(marks: list[tuple[str, float]]) -> None:
    warn("Timings depend on private rows: do not publish them.")
    for (step, start), (_, end) in pairwise(marks):
        say(f"  {end - start:8.3f} s  {step}")
