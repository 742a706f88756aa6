"""Progress of a run: events that are text for people, with fields for programs."""

from __future__ import annotations

from collections.abc import Callable
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


class Event(str):
    """The start of a step, as text: number `step` of `steps`, if the phase has several.

    It holds public figures only: the number of planned steps, never the number of rows.
    """

    phase: Phase
    step: int
    steps: int

    def __new__(cls, phase: Phase, step: int = 0, steps: int = 0, name: str = "step") -> Event:
        event = super().__new__(cls, f"{phase}, {name} {step} of {steps}" if steps else phase)
        event.phase, event.step, event.steps = phase, step, steps
        return event


Observer = Callable[[Event], None]  # a function of text is one too


def unobserved(event: Event) -> None:
    """An observer that ignores every event."""


def observer(progress: Observer | None) -> Observer:
    """The observer that a caller gave, or none. Raises `UsageError` for what is no function."""
    if progress is None:
        return unobserved
    if not callable(progress):
        raise UsageError("progress must be a function.")
    return progress
