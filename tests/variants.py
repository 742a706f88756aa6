"""Leaves most variants of a test to `pytest -m more`, so that the default run stays short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

PARAM = type(pytest.param())


def some(
    names: str | Sequence[str], cases: Iterable[Any], *, keep: int, **options: Any
) -> pytest.MarkDecorator:
    """Like `pytest.mark.parametrize`, but the default run has only `keep` cases, evenly spread."""
    listed = [case if isinstance(case, PARAM) else _param(names, case) for case in cases]
    last = len(listed) - 1
    kept = {round(i * last / max(keep - 1, 1)) for i in range(keep)}
    for i, case in enumerate(listed):
        if i not in kept:
            marks = [*case.marks, pytest.mark.more]
            listed[i] = pytest.param(*case.values, marks=marks, id=case.id)
    return pytest.mark.parametrize(names, listed, **options)


def _param(names: str | Sequence[str], case: Any) -> Any:
    return pytest.param(case) if isinstance(names, str) else pytest.param(*case)
