"""Attributes drawn one after the other: what a row changes, and what is drawn beside what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from steps import encode

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.learners import informative_tables
from dpforest_duckdb.learners.informative_tables import draw_attributes
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.recipes import find
from dpforest_duckdb.splits import limits

DOMAIN = Domain(
    (
        Attribute("a", "categorical", ("x", "y", "z"), nullable=False),
        Attribute("copy", "categorical", ("x", "y", "z"), nullable=False),
        Attribute("n", "numeric", lower=0, upper=4, bins=4, nullable=False),
        Attribute("m", "numeric", lower=0, upper=4, bins=4, nullable=False),
    ),
    "c",
    ("c0", "c1", "c2"),
).bind({"a": VARCHAR, "copy": VARCHAR, "n": INTEGER, "m": INTEGER, "c": VARCHAR})
Row = tuple[str, str, int, int, str]


def some_rows(rows: int, seed: int = 0) -> list[Row]:
    """The class follows "n" and "a" together; "copy" is the same as "a"; "m" says nothing."""
    random, found = np.random.default_rng(seed), []
    for _ in range(rows):
        a, n, m = random.integers(3), random.integers(4), random.integers(4)
        label = int((a == 0) != (n < 2)) if random.random() < 0.9 else 2
        found.append(("xyz"[a], "xyz"[a], int(n) + 1, int(m) + 1, f"c{label}"))
    return found


def coded(con: duckdb.DuckDBPyConnection, rows: list[Row]) -> CodedRows:
    con.execute("CREATE OR REPLACE TABLE t (a VARCHAR, copy VARCHAR, n INT, m INT, c VARCHAR)")
    if rows:
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    engine = DuckDBEngine(con)
    table, unit = engine.table("t"), PrivacyUnit("row")
    return encode(engine, table, DOMAIN, unit, trees=1, sample="all", salt=1)


def drawn(
    con: duckdb.DuckDBPyConnection, rows: list[Row], turns: int, k: int = 1, epsilon: int = NANO
) -> list[int]:
    counted = coded(con, rows)
    tables = [table[0] for table in counted.count_classes(0, 1)]
    request = find("log-odds").request(DOMAIN, NANO, trees=turns, rows_per_unit=k)
    account = SimpleNamespace(spend=lambda purpose, turn: epsilon)
    context = SimpleNamespace(request=request, account=account, randomness=Randomness.secure())
    return draw_attributes(counted, tables, cast(Any, context))


def test_a_copy_is_not_drawn_beside_its_original(con: duckdb.DuckDBPyConnection) -> None:
    for seed in range(3):
        one, two, _ = drawn(con, some_rows(400, seed), 3, epsilon=1000 * NANO)
        assert {one, two} != {0, 1}
    assert sorted(drawn(con, some_rows(400), 4, epsilon=1000 * NANO)) == [0, 1, 2, 3]


@pytest.mark.parametrize("k", [1, 4])
def test_rows_of_a_unit_raise_each_utility_by_the_sensitivity_at_most(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    """The utilities of "n", "copy" and "m" after "a" was drawn, "n" after "copy", and so on."""
    given: list[tuple[np.ndarray, int]] = []

    def first(utilities: np.ndarray, cost: int, sensitivity: int, bits: object) -> int:
        given.append((utilities, sensitivity))
        return 0

    monkeypatch.setattr(informative_tables, "draw_best", first)
    largest = np.zeros(4)
    for seed in range(4):
        rows = some_rows(10 * seed)  # in a table without rows, a unit raises every term
        given.clear()
        drawn(con, rows, 4, k)
        drawn(con, rows + some_rows(1, 9 - seed) * k, 4, k)
        for turn, ((before, bound), (after, _)) in enumerate(zip(given, given[4:], strict=False)):
            assert bound == (turn + 1) * k
            assert (after >= before).all()
            assert (after - before <= bound).all()
            largest[turn] = max(largest[turn], (after - before).max())
    assert largest.tolist() == [k, 2 * k, 3 * k, 4 * k]


def test_pairs_of_values_are_counted_for_every_attribute(con: duckdb.DuckDBPyConnection) -> None:
    rows = some_rows(50)
    codes = np.array(
        [[a.code(v) for a, v in zip(DOMAIN.attributes, r, strict=False)] for r in rows]
    )
    labels = np.array([DOMAIN.classes.index(row[-1]) for row in rows])
    for attribute in (0, 2):
        for other, table in enumerate(coded(con, rows).count_pairs(attribute)):
            expected = np.zeros((DOMAIN.cells[attribute], DOMAIN.cells[other], 3), dtype=np.int64)
            np.add.at(expected, (codes[:, attribute], codes[:, other], labels), 1)
            assert (table == expected).all()


def test_an_attribute_of_too_many_values_has_no_pairs(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a utility is that of the attribute alone, and has its sensitivity."""
    given = []
    monkeypatch.setattr(
        informative_tables, "draw_best", lambda u, cost, bound, bits: given.append(bound) or 0
    )
    monkeypatch.setattr(limits, "MAX_COUNTS", min(DOMAIN.cells) * sum(DOMAIN.cells) * 3 - 1)
    drawn(con, some_rows(50), 4)
    assert given == [1, 1, 1, 1]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_few_rows_gets_attributes_too(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    assert len(set(drawn(con, some_rows(rows), 4))) == 4
