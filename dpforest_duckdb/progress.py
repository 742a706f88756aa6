"""Progress of a run: typed events for programs, and their text for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dpforest_duckdb.errors import UsageError


class Phase(StrEnum):
    """The steps of a run, in the order in which they happen."""

    DEBIT = "debiting the budget"
    COUNT_ROWS = "counting rows"
    CHECK_BOUNDS = "checking bounds"
    COMPARE_ATTRIBUTES = "comparing attributes"
    CHOOSE_BINS = "choosing bins"
    ENCODE = "encoding rows"
    CHOOSE_SPLITS = "choosing splits"
    COUNT_TABLES = "counting tables"
    BOOST = "boosting"
    COUNT_LEAVES = "counting leaves"
    COMPARE_SUMS = "comparing sums"
    FINISH = "finishing"
    STORE = "storing the model"


@dataclass(frozen=True)
class Event:
    """The start of a step: number `step` of `steps`, called `name`, if the phase has several.

    It holds public figures only: the number of planned steps, never the number of rows.
    """

    phase: Phase
    step: int = 0
    steps: int = 0
    name: str = "step"

    def __str__(self) -> str:
        if not self.steps:
            return self.phase
        return f"{self.phase}, {self.name} {self.step} of {self.steps}"


Observer = Callable[[Event], None]
TextObserver = Callable[[str], None]


def as_text(progress: TextObserver) -> Observer:
    """An observer of events that passes on their text. Raises `UsageError` for no function."""
    if not callable(progress):
        raise UsageError("progress must be a function.")
    return lambda event: progress(str(event))


def unobserved(event: Event) -> None:
    """An observer that ignores every event."""
