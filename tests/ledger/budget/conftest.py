"""A database with one small table, for the tests of its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from small_tables import fill


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        fill(con)
    return tmp_path


@pytest.fixture
def con(home: Path) -> Any:
    with duckdb.connect(str(home / "a.duckdb")) as connection:
        yield connection
