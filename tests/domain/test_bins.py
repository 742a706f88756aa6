"""Bins of numeric attributes: where bounds are cut, and how edges are written."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pytest
from domain_mappings import mapping, numeric

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.bin_edges import Scale, cut
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import (
    DATE,
    DOUBLE,
    INTEGER,
    column_type,
)
from dpforest_duckdb.domain.values import ordinal
from dpforest_duckdb.errors import DpforestError


def edges(sql_type: str, **keys: object) -> tuple:
    return (
        domain_from_mapping(mapping(numeric(**keys)))
        .attributes[0]
        .bound(column_type(sql_type))
        .edges
    )


def test_bins_are_equal_in_width_over_the_bounds() -> None:
    assert edges("DOUBLE", lower=0, upper=8, bins=4) == (2, 4, 6)
    assert len(edges("DOUBLE", lower=0, upper=1)) == 31


def test_an_integer_column_gets_at_most_one_bin_per_integer() -> None:
    assert edges("INTEGER", lower=1, upper=4) == (1, 2, 3)
    assert edges("INTEGER", lower=17, upper=90, bins=2) == (53,)
    assert edges("INTEGER", lower=0.5, upper=2.5, bins=4) == (1,)


def test_log_spaced_and_own_edges() -> None:
    assert edges("DOUBLE", lower=1, upper=10_000, bins=4, scale="log") == pytest.approx(
        (10, 100, 1000)
    )
    assert edges("DOUBLE", lower=0.05, upper=400.0, bins=5, scale="log") == (0.3, 1.8, 11, 70)
    zero = edges("DOUBLE", lower=0, upper=100, bins=4, scale="log")
    assert 0 < zero[0] < zero[1] < zero[2] < 50
    assert edges("DOUBLE", edges=[1.5, 2.5]) == (1.5, 2.5)
    assert edges("INTEGER", edges=[1.5, 2.5]) == (1, 2)


TINY = math.ulp(0.0)  # the least number above 0


@pytest.mark.parametrize(
    ("sql_type", "lower", "upper"),
    [
        ("DOUBLE", 0, TINY),
        ("DOUBLE", -TINY, 9 * TINY),
        ("FLOAT", 0.0, 400 * TINY),
        ("DECIMAL(10,2)", 0, TINY),
        ("DOUBLE", 2**53 + 3, float(2**53 + 4)),  # rounded, they are the same
    ],
)
def test_bounds_too_close_for_bins_are_refused(sql_type: str, lower: float, upper: float) -> None:
    """Bins of equal width are as before, even if they are not the bins that are asked for."""
    assert edges(sql_type, lower=lower, upper=upper)
    sentence = 'lower and upper of column "x" are too close together to be cut into bins'
    with pytest.raises(DpforestError, match=sentence):
        edges(sql_type, lower=lower, upper=upper, scale="mixed")
    attribute = Attribute("x", "numeric", lower=lower, upper=upper).bound(column_type(sql_type))
    for bins in (4, 32, 128, 240):
        with pytest.raises(DpforestError, match=sentence):
            attribute.recut(bins)


@pytest.mark.parametrize("upper", [1e-320, 1e-308, 9e299])
def test_bounds_as_close_or_as_wide_as_numbers_are_can_be_cut(upper: float) -> None:
    for lower in (0, -upper):
        attribute = Attribute("x", "numeric", lower=lower, upper=upper).bound(DOUBLE)
        cut = attribute.recut(128).edges
        assert len(cut) > 60
        assert lower <= cut[0] < cut[-1] <= upper


@pytest.mark.parametrize(
    ("lower", "upper", "values"),
    [
        (2**60 - 20, 2.0**60, 20),
        (2**70 - 2**16, 2.0**70, None),
        (2**125 - 2**70, 2.0**125, None),
        (-(2.0**125), 2**70 - 2**125, None),
    ],
)
def test_a_range_that_is_rounded_to_nothing_is_not_listed_value_by_value(
    lower: float, upper: float, values: int | None
) -> None:
    """The range of these is 0 as a float; there are up to 2 ** 70 whole numbers in it."""
    attribute = Attribute("x", "numeric", lower=lower, upper=upper).bound(column_type("HUGEINT"))
    cut = attribute.recut(240).edges
    assert len(cut) == values if values else 100 < len(cut) <= 240
    assert all(isinstance(edge, int) for edge in cut)


@pytest.mark.parametrize("sql_type", ["INTEGER", "DOUBLE"])
@pytest.mark.parametrize("scale", [None, "log", "mixed"])
def test_bounds_that_are_no_numbers_are_refused(sql_type: str, scale: Scale | None) -> None:
    kind = column_type(sql_type)
    for lower, upper in ((0, math.nan), (math.nan, 0)):
        with pytest.raises(DpforestError, match="must be less than upper"):
            Attribute("x", "numeric", lower=lower, upper=upper, scale=scale)
    for lower, upper in ((-math.inf, math.inf), (-1e308, 1e308), (0, 10**400)):
        attribute = Attribute("x", "numeric", lower=lower, upper=upper, scale=scale)
        with pytest.raises(DpforestError, match="beyond that"):
            attribute.bound(kind)
    with pytest.raises(DpforestError, match="ascend"):
        Attribute("x", "numeric", edges=(0.0, math.nan))
    with pytest.raises(DpforestError, match="beyond that"):
        Attribute("x", "numeric", edges=(math.nan,)).bound(kind)


def test_dates_are_cut_by_day() -> None:
    column = numeric(lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 4))
    attribute = domain_from_mapping(mapping(column)).attributes[0].bound(DATE)
    assert [attribute.text(e) for e in attribute.edges] == [f"2020-01-0{d}" for d in (1, 2, 3)]
    assert attribute.code(dt.date(2020, 1, 2)) == 1
    assert attribute.code(dt.date(1999, 1, 1)) == 0
    assert attribute.code(dt.date(2030, 1, 1)) == 3


@pytest.mark.parametrize("sql_type", ["DATE", "TIMESTAMP"])
def test_dates_get_bins_of_equal_width(sql_type: str) -> None:
    """Number 0 is the beginning of 1970, which means nothing for dates of birth."""
    born = Attribute("born", "numeric", lower=dt.date(1930, 1, 1), upper=dt.date(2015, 12, 31))
    edges = born.bound(column_type(sql_type)).recut(32).edges
    widths = np.diff(edges)
    assert len(edges) == 32, "as many as those of numbers"
    assert widths.max() <= 1.01 * widths.min()
    day = {"DATE": 1, "TIMESTAMP": 86_400}[sql_type]
    assert all(edge % day == 0 for edge in edges)


def test_few_days_have_a_bin_each() -> None:
    week = Attribute("d", "numeric", lower=dt.date(2024, 1, 1), upper=dt.date(2024, 1, 7))
    assert len(week.bound(DATE).recut(4).edges) == 6


@pytest.mark.parametrize(
    ("sql_type", "lower", "upper"),
    [
        ("DOUBLE", 0.0, 67.1),
        ("DOUBLE", -3.7, 1e9 / 3),
        ("DOUBLE", 0.0, 1e-307),
        ("DOUBLE", -9e299, 9e299),
        ("DECIMAL(9, 2)", 0.01, 99.37),
        ("BIGINT", 0, 18_424),
        ("BIGINT", -(2**62), 2**62),
        ("TIMESTAMP", dt.datetime(2020, 1, 1, 0, 0, 7), dt.datetime(2024, 2, 29, 23, 59, 59)),
        ("TIMESTAMP", dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 9)),
    ],
)
@pytest.mark.parametrize("bins", [4, 32, 240])
def test_mixed_bins_are_cut_at_numbers_of_few_digits(
    sql_type: str, lower: Any, upper: Any, bins: int
) -> None:
    kind = column_type(sql_type)
    plain = Attribute("a", "numeric", lower=lower, upper=upper).bound(kind)
    edges = plain.recut(bins).edges
    low, high = (ordinal(limit, kind.family) for limit in (lower, upper))
    assert list(edges) == sorted(set(edges))
    assert low <= edges[0]
    assert edges[-1] <= high
    assert len(edges) >= min(bins, 240) - 3 or kind.family == "integer" or high - low < 10
    widths = np.diff([low, *edges, high])
    if kind.family == "float":
        exact = cut(low, high, bins, "mixed", whole=False, has_zero=True)
        narrower = np.minimum(
            *(np.diff([low, *exact, high])[part] for part in (slice(-1), slice(1, None)))
        )
        assert (abs(np.subtract(edges, exact)) <= narrower / 10 * (1 + 1e-9)).all()
    for edge, narrower in zip(edges, np.minimum(widths[:-1], widths[1:]), strict=True):
        if kind.family != "timestamp":
            digits = repr(edge).partition("e")[0].strip("-").replace(".", "").strip("0")
            span = math.log10(max(abs(edge) / float(narrower), 1.0))
            assert len(digits) <= span + 3, (edge, narrower)
        elif narrower > 500_000:
            assert edge % 86_400 == 0


@pytest.mark.parametrize(
    ("edge", "text"),
    [
        (0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (-2.5, "-2.5"),
        (0.00001, "0.00001"),
        (1e-12, "1e-12"),
        (999999999999999.0, "999999999999999"),
        (1e15, "1000000000000000"),
        (-1234567890123456.0, "-1234567890123456"),
        (1e16, "1e+16"),
        (12345678901234568.0, "1.2345678901234568e+16"),
        (10**20, "100000000000000000000"),
    ],
)
def test_cut_points_are_written_in_digits_unless_they_are_very_large_or_small(
    edge: float, text: str
) -> None:
    assert Attribute("a", "numeric", edges=(edge,)).bound(column_type("DOUBLE")).text(edge) == text
    assert float(text) == pytest.approx(edge, rel=1e-15)


def test_a_bin_of_one_whole_number_has_its_name() -> None:
    few = Attribute("a", "numeric", lower=0, upper=5).bound(column_type("INTEGER")).recut(8)
    labels = [few.label(cell) for cell in range(few.proper)]
    assert labels == ["<= 0", "1", "2", "3", "4", "> 4"]
    days = Attribute("d", "numeric", edges=(dt.date(2024, 1, 1), dt.date(2024, 1, 2)))
    assert days.bound(column_type("DATE")).label(1) == "2024-01-02"
    fractions = Attribute("a", "numeric", edges=(1, 2)).bound(column_type("DOUBLE"))
    assert fractions.label(1) == "> 1 and <= 2"


def test_bins_that_the_domain_chose_stay() -> None:
    kept = [
        Attribute("a", "numeric", lower=0, upper=9, bins=3),
        Attribute("b", "numeric", edges=(1.0, 2.0, 3.0)),
        Attribute("c", "numeric", lower=1, upper=100, scale="log"),
        Attribute("d", "numeric", lower=0, upper=9, edges=(4.0,)),
    ]
    for attribute in kept:
        bound = attribute.bound(DOUBLE)
        assert bound.recut(8) == bound
    own = Attribute("e", "numeric", lower=-5, upper=100).bound(DOUBLE)
    assert len(own.recut(8).edges) == 8
    assert own.recut(8).edges == tuple(sorted(own.recut(8).edges))
    whole = Attribute("f", "numeric", lower=0, upper=3).bound(INTEGER)
    assert set(whole.recut(32).edges) <= {0, 1, 2}
    few = Attribute("g", "numeric", lower=1, upper=8).bound(INTEGER)
    assert few.recut(4).edges == (1, 2, 3, 4, 5, 6, 7), "few whole numbers have a bin each"
    more = Attribute("h", "numeric", lower=1, upper=9).bound(INTEGER)
    assert len(more.recut(4).edges) == 4
