"""Killed at any step, a training leaves no overspending, no unpaid query, no partial model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from crash import READS, crashed
from variants import some

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


@some(
    ("first", "point", "spent", "written"),
    [
        ("ledger commit", 1, False, False),
        ("ledger commit", 2, True, False),
        (READS, 1, True, False),
        (READS, 2, True, False),
        ("before rename", 1, True, False),
        ("before rename", 2, True, True),
    ],
    keep=3,
)
def test_a_training_killed_at_some_of_its_steps_leaves_order(
    made: Path, tmp_path: Path, first: str, point: int, spent: bool, written: bool
) -> None:
    end = crashed(made, tmp_path / "killed", point=point, first=first)
    assert not end.finished
    assert (end.spent > 0, end.written) == (spent, written)


def test_a_training_that_is_not_killed_debits_before_it_reads(made: Path, tmp_path: Path) -> None:
    whole = crashed(made, tmp_path / "whole")
    assert whole.finished
    assert whole.stored
    assert whole.written
    assert whole.steps.index("ledger commit") < whole.steps.index(READS)


@pytest.mark.slow
def test_a_training_killed_at_every_step_leaves_order(made: Path, tmp_path: Path) -> None:
    steps = len(crashed(made, tmp_path / "whole").steps)
    assert steps > 30
    for point in range(1, steps + 1):
        end = crashed(made, tmp_path / f"at{point}", point=point)
        assert not end.finished or len(end.steps) < point, "noise decides how many steps there are"


@pytest.mark.slow
def test_a_training_killed_at_any_moment_leaves_order(made: Path, tmp_path: Path) -> None:
    for moment in range(20):
        crashed(made, tmp_path / f"after{moment}", after=0.1 * moment)
