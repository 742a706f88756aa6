"""An empty ledger for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpforest_duckdb.ledger.book import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "hospital.ledger")
