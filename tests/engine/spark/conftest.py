"""Each file of tests that asks for a Spark shares one, which ends with the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from spark_sessions import started


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = started("local[2]", tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
