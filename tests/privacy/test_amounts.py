"""Amounts of ε and δ as integers: what is spent is rounded up, what is allowed down."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.privacy.amounts import ATTO, NANO, atto_delta, nano_epsilon


@given(st.decimals("1e-9", "999999", places=14))
def test_a_cost_is_never_less_than_asked_and_a_cap_never_more(epsilon: Decimal) -> None:
    cost, cap = nano_epsilon(epsilon), nano_epsilon(epsilon, cap=True)
    assert cost >= epsilon * NANO > cost - 1
    assert cap <= epsilon * NANO < cap + 1


@given(st.just(Decimal(0)) | st.decimals("1e-18", "0.999999", places=24))
def test_the_same_of_delta(delta: Decimal) -> None:
    cost, cap = atto_delta(delta), atto_delta(delta, cap=True)
    assert cost >= delta * ATTO > cost - 1
    assert cap <= delta * ATTO < cap + 1


@pytest.mark.parametrize("cap", [False, True])
def test_amounts_below_the_smallest_unit_are_refused(cap: bool) -> None:
    """Rounded up they would promise less than asked, and rounded down nothing is left."""
    for digits in ("9.99e-10", "9." + "9" * 60 + "e-10", "1e-9999999"):
        with pytest.raises(UsageError, match="at least 1e-9"):
            nano_epsilon(digits, cap=cap)
    for digits in ("9.99e-19", "9." + "9" * 60 + "e-19", "1e-9999999"):
        with pytest.raises(UsageError, match="at least 1e-18"):
            atto_delta(digits, cap=cap)


def test_a_delta_that_rounds_up_to_1_is_refused() -> None:
    assert atto_delta("0." + "9" * 18) == ATTO - 1
    assert atto_delta("0." + "9" * 19, cap=True) == ATTO - 1
    with pytest.raises(UsageError, match="at most 1 - 1e-18"):
        atto_delta("0." + "9" * 19)


def test_a_cap_of_three_times_a_cost_grants_it_three_times_only_where_it_fits() -> None:
    assert 3 * nano_epsilon("0.1") == nano_epsilon("0.3", cap=True)
    assert 3 * nano_epsilon("0.3333333333") > nano_epsilon("0.9999999999", cap=True)


def test_numbers_of_any_length_are_rounded_to_the_safe_side() -> None:
    assert nano_epsilon("0." + "9" * 60, cap=True) == NANO - 1
    assert nano_epsilon("1." + "0" * 60 + "1") == NANO + 1
    assert atto_delta("0.0" + "9" * 60, cap=True) == ATTO // 10 - 1
