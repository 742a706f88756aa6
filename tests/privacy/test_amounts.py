"""Amounts of ε and δ as integers, never above what was asked."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.privacy.amounts import ATTO, NANO, atto_delta, nano_epsilon


@given(st.decimals("1e-9", "999999", places=14))
def test_an_epsilon_is_never_more_than_asked(epsilon: Decimal) -> None:
    nano = nano_epsilon(epsilon)
    assert nano <= epsilon * NANO < nano + 1


@given(st.just(Decimal(0)) | st.decimals("1e-18", "0.999999", places=24))
def test_a_delta_is_never_more_than_asked(delta: Decimal) -> None:
    atto = atto_delta(delta)
    assert atto <= delta * ATTO < atto + 1


def test_amounts_below_the_smallest_unit_are_refused() -> None:
    """Rounded down nothing is left."""
    for digits in ("9.99e-10", "9." + "9" * 60 + "e-10", "1e-9999999"):
        with pytest.raises(UsageError, match="at least 1e-9"):
            nano_epsilon(digits)
    for digits in ("9.99e-19", "9." + "9" * 60 + "e-19", "1e-9999999"):
        with pytest.raises(UsageError, match="at least 1e-18"):
            atto_delta(digits)


def test_a_whole_number_of_any_length_is_an_amount_that_is_too_large() -> None:
    for amount, words in ((nano_epsilon, "at most 1000000"), (atto_delta, "less than 1")):
        with pytest.raises(UsageError, match=words):
            amount(10**5000)


def test_a_cap_allows_as_many_runs_as_it_is_divided_into() -> None:
    assert 3 * nano_epsilon("0.1") == nano_epsilon("0.3")
    assert all(n * nano_epsilon(1 / n) <= nano_epsilon(1) for n in range(1, 1000))


def test_numbers_of_any_length_are_rounded_down() -> None:
    assert nano_epsilon("0." + "9" * 60) == NANO - 1
    assert nano_epsilon("1." + "0" * 60 + "1") == NANO
    assert atto_delta("0." + "9" * 60) == ATTO - 1
    assert atto_delta("0.0" + "9" * 60) == ATTO // 10 - 1
