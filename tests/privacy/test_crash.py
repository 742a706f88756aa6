"""Killed at any step, a training leaves no overspending, no unpaid query, no partial model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from crash import READS, crashed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


def test_a_training_killed_at_some_of_its_steps_leaves_order(made: Path, tmp_path: Path) -> None:
    whole = crashed(made, tmp_path / "whole")
    assert whole.finished
    assert whole.stored
    assert whole.written
    commits = [n for n, name in enumerate(whole.steps, 1) if name == "ledger commit"]
    encode = whole.steps.index(READS) + 1
    assert commits[0] < encode, "the debit comes first"
    rename = whole.steps.index("before rename") + 1
    ends = [
        crashed(made, tmp_path / f"at{point}", point=point)
        for point in (commits[0], commits[0] + 1, encode, encode + 1, rename, rename + 1)
    ]
    assert [end.finished for end in ends] == [False] * 6
    assert [end.spent > 0 for end in ends] == [False, True, True, True, True, True]
    assert [end.written for end in ends] == [False] * 5 + [True]


@pytest.mark.slow
def test_a_training_killed_at_every_step_leaves_order(made: Path, tmp_path: Path) -> None:
    steps = len(crashed(made, tmp_path / "whole").steps)
    assert steps > 30
    for point in range(1, steps + 1):
        end = crashed(made, tmp_path / f"at{point}", point=point)
        assert not end.finished


@pytest.mark.slow
def test_a_training_killed_at_any_moment_leaves_order(made: Path, tmp_path: Path) -> None:
    for moment in range(20):
        crashed(made, tmp_path / f"after{moment}", after=0.1 * moment)
