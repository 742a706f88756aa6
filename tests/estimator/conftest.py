"""What every test of the estimator needs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from dpforest_duckdb.errors import NoBudgetWarning


@pytest.fixture(autouse=True)
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the warning about a missing budget, which is given once in a process."""
    pytest.importorskip("sklearn")
    from dpforest_duckdb.sklearn import classifier

    monkeypatch.setattr(classifier, "_warned", [])
    with warnings.catch_warnings(action="ignore", category=NoBudgetWarning):
        yield
