"""A preliminary step of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpforest_duckdb.progress import Phase
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.reading import Reader


@dataclass(frozen=True)
class Step:
    """Queries before trees grow: `asked` says whether a context has them, `adapt` asks them.

    `adapt` returns the context with what follows from the noisy answers. `phase` names the step in
    progress messages.
    """

    phase: Phase
    asked: Callable[[RunContext], bool]
    adapt: Callable[[Reader, RunContext], RunContext]


def asks(purpose: str) -> Callable[[RunContext], bool]:
    """Whether the plan of a context has a query."""
    return lambda context: context.accountant.plan.query(purpose) is not None
