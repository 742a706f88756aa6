"""Under a fixed seed every recipe makes the forest that is recorded for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from same_forests import MANY_TREES, RECORDED, TARGETS, cases, forest_hash, prepared_connection

HASHES = json.loads(RECORDED.read_text(encoding="utf-8"))


def quick(options: dict[str, Any]) -> bool:
    """The rigorous form of each recipe on the table of two classes; of many trees a few."""
    if options["target"] != next(iter(TARGETS)) or ":" in options["recipe"] or "epsilon" in options:
        return False
    if options["recipe"] in MANY_TREES:
        return "trees" in options
    return not options.get("as_published", False)


CASES = [
    pytest.param(name, options, marks=() if quick(options) else pytest.mark.slow, id=name)
    for name, options in cases()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the ledger, which stays one and the same: the table remembers it."""
    return tmp_path_factory.mktemp("same")


@pytest.fixture(scope="module")
def visits() -> Iterator[duckdb.DuckDBPyConnection]:
    with prepared_connection() as connection:
        yield connection


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_recipe_makes_the_recorded_forest(
    visits: duckdb.DuckDBPyConnection, folder: Path, name: str, options: dict[str, Any]
) -> None:
    found = forest_hash(visits, folder, **options)
    assert found == HASHES[name], "if this is meant: python tests/same_forests.py --write"


def test_nothing_is_recorded_that_is_not_a_case() -> None:
    assert set(HASHES) == {name for name, _ in cases()}
