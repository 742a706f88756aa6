"""Exponentials and logarithms are the same whole numbers in every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import pytest

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.engine.shared.exponentials import (
    LOG_STEPS,
    ONE,
    Shares,
    exponential,
    logarithm,
)
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import SCALE

LAST = int(SCALE * np.log(4 * ONE))  # the exponential of this distance, and of larger ones, is 0
CLASSES = 26  # of which all sums of exponentials are tested
AT_ONCE = 2**20
PLACES = 2  # a library's result may be this many floating-point numbers beside the exact value

exact = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 60, reason="long double is no longer than double here"
)


def chunks(first: int, end: int) -> Iterator[Integers]:
    for start in range(first, end, AT_ONCE):
        yield np.arange(start, min(start + AT_ONCE, end))


def rounded(function: Callable[[Floats], Floats], at: Floats, units: int) -> Integers:
    """The values of a function as whole numbers of units, where no library can differ."""
    value = function(at.astype(np.longdouble)).astype(np.float64)
    low = high = value
    for _ in range(PLACES):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    floors = [np.floor(units * each + 0.5) for each in (low, high)]
    assert (floors[0] == floors[1]).all()
    return floors[0].astype(np.int64)


@exact
@pytest.mark.more
def test_no_exponential_is_next_to_the_middle_between_two_numbers() -> None:
    """All 18 million arguments whose exponential is not 0, in a second."""
    for distance in chunks(0, LAST):
        expected = rounded(np.exp, distance / -float(SCALE), ONE)
        assert (in_duckdb(exponential("d"), distance) == expected).all()
    assert expected[-1] == 0


@exact
def test_no_logarithm_is_next_to_the_middle_between_two_numbers() -> None:
    """All sums of the exponentials of at most 26 classes, the highest of which is 1."""
    for total in chunks(LOG_STEPS, CLASSES * LOG_STEPS + 1):
        expected = rounded(np.log, total / LOG_STEPS, SCALE)
        in_ones = f"(d * {ONE // LOG_STEPS} + {ONE // LOG_STEPS - 1})"
        assert (in_duckdb(logarithm(in_ones), total) == expected).all()
    assert expected[0] > expected[-1] - SCALE


def in_duckdb(value: Sql, at: Integers) -> Integers:
    sql = f"SELECT {value} AS v FROM range({at[0]}, {at[-1] + 1}) AS r(d)"
    return np.asarray(duckdb.sql(sql).fetchnumpy()["v"], dtype=np.int64)


def test_shares_of_more_than_a_thousand_classes() -> None:
    """A sum of that many terms would be deeper than DuckDB allows."""
    classes, whole = 1100, 2**16
    shares = Shares.of([Sql("0")] * classes, whole, Sql)
    source = "SELECT 1"
    for layer in shares.layers:
        added = ", ".join(f"{column.value} AS {column.name}" for column in layer)
        source = f"SELECT *, {added} FROM ({source})"
    by_class = ", ".join(shares.by_class.values())
    found = duckdb.connect().execute(f"SELECT {by_class} FROM ({source})").fetchone()
    assert found == (whole // classes,) * classes
