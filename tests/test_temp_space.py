"""The bound on temporary space, which a run must not exceed once its budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.packing import blocks
from dpforest_duckdb.engine.rows import DuckDBRows
from dpforest_duckdb.training.prepare import prepare

ATTRIBUTES, ROWS = 30, 400


@pytest.fixture
def domain(con: duckdb.DuckDBPyConnection) -> Callable[..., Domain]:
    """Makes a table of numbers from 1 to 8, and a domain with wider bounds."""

    def made(lower: int, upper: int, sql_type: str) -> Domain:
        names = [f"x{number}" for number in range(ATTRIBUTES)]
        columns = [
            f"CAST(1 + hash(i, {number}) % 8 AS {sql_type}) AS {name}"
            for number, name in enumerate(names)
        ]
        label = "'c' || CASE WHEN x0 > 4 THEN 0 ELSE i % 3 END"
        con.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT *, {label} AS c "
            f"FROM (SELECT i, {', '.join(columns)} FROM range({ROWS}) AS rows(i))"
        )
        attributes = tuple(Attribute(name, "numeric", lower=lower, upper=upper) for name in names)
        return Domain(attributes, "c", ("c0", "c1", "c2"))

    return made


@pytest.mark.parametrize(
    ("recipe", "bounds", "sql_type"),
    [
        ("log-odds", (0, 10), "DOUBLE"),
        ("log-odds", (0, 10**6), "INTEGER"),
        ("boosted", (0, 10), "DOUBLE"),
        ("greedy-tree", (0, 10), "INTEGER"),
    ],
)
def test_the_bound_counts_every_table_that_a_run_codes(
    con: duckdb.DuckDBPyConnection,
    domain: Callable[..., Domain],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    recipe: str,
    bounds: tuple[int, int],
    sql_type: str,
) -> None:
    """DuckDB frees none of them before the last one, and counting copies one."""
    words: list[int] = []
    encode = DuckDBRows.encode

    def noted(self: DuckDBRows, *args: Any, **options: Any) -> None:
        words.append(blocks(self._domain.cells, 3)[-1].word + 1)
        encode(self, *args, **options)

    monkeypatch.setattr(DuckDBRows, "encode", noted)
    run = prepare(
        con, "t", epsilon=10, domain=domain(*bounds, sql_type), recipe=recipe,
        privacy_unit="row", ledger=tmp_path / "l",
    )  # fmt: skip
    run.execute()
    assert len(words) > 1
    assert 8 * (sum(words) + max(words)) < run.bytes_of_a_row
