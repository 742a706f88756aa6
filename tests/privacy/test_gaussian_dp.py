"""Gaussian DP: the conversion, what mechanisms cost, and an accountant that adds up in μ²."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import spending

from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.gaussian_dp import (
    PI,
    delta_of,
    drawn_cost,
    drawn_epsilon,
    pure_cost,
    pure_epsilon,
    squared_mu_of,
)
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP
from dpforest_duckdb.privacy.plan import Plan, PlanError, PlannedQuery

DELTA = ATTO // 10**5
NORMAL = NormalDist()


def exact_delta(mu: float, epsilon: float) -> float:
    """Balle & Wang 2018, (6), in floating point."""
    near, far = (epsilon / mu + side * mu / 2 for side in (-1, 1))
    tails = [math.erfc(z / math.sqrt(2)) / 2 for z in (near, far)]
    return tails[0] - math.exp(epsilon) * tails[1]


@pytest.mark.parametrize(
    ("epsilon", "sigma"),
    [
        (0.1, 30.7496), (0.5, 7.0318), (1, 3.7306), (4, 1.08116), (100, 0.0946699070147),
        (10**4, 0.00728715745278), (10**6, 0.000709242086866),
    ],
)  # fmt: skip
def test_the_conversion_gives_the_known_figures(epsilon: float, sigma: float) -> None:
    """The noise of the analytic Gaussian mechanism at δ = 1e-5; for a large ε, it is not less."""
    mu = math.sqrt(squared_mu_of(int(epsilon * NANO), DELTA) / ATTO)
    assert 1 / mu == pytest.approx(sigma, rel=2e-5)
    assert epsilon < 100 or 1 / mu > sigma * (1 - 1e-12)


@given(epsilon=st.floats(0.05, 8), delta=st.floats(1e-9, 0.5))
def test_delta_is_that_of_normal_noise_and_all_of_it_is_used(epsilon: float, delta: float) -> None:
    nano, atto = round(epsilon * NANO), round(delta * ATTO)
    mu = math.sqrt(squared_mu_of(nano, atto) / ATTO)
    assert exact_delta(mu, (nano - 1) / NANO) == pytest.approx(delta, rel=1e-5)


def test_a_billionth_of_epsilon_and_of_delta_is_kept_back_for_the_noise() -> None:
    stated = delta_of(ATTO, NANO) / ATTO
    assert exact_delta(1, 1) * (1 + 0.9e-9) < stated < exact_delta(1, 1) * (1 + 1.1e-9)
    found = squared_mu_of(NANO, ATTO // 10)
    assert delta_of(found, NANO - 1) <= ATTO // 10 < delta_of(found + found // 10**9, NANO - 1)


def test_no_mu_is_allowed_if_the_least_needs_a_larger_delta() -> None:
    """At an ε of 0, as of one nano-ε which is kept back, δ is about μ / √(2π)."""
    least = round(math.sqrt(ATTO / (2 * math.pi)))  # in atto, for one atto-μ²
    assert delta_of(1, 0) == pytest.approx(least, rel=1e-6)
    assert squared_mu_of(1, least * 99 // 100) == 0
    assert squared_mu_of(1, least * 101 // 100) == 1
    assert squared_mu_of(10**15, 0) == 0


@given(epsilon=st.integers(1, 10**15), delta=st.integers(1, ATTO - 1))
@pytest.mark.more
def test_the_largest_squared_mu_is_used(epsilon: int, delta: int) -> None:
    found = squared_mu_of(epsilon, delta)
    assert not found or delta_of(found, epsilon - 1) <= delta
    assert delta_of(found + found // 10**6 + 2, epsilon - 1) > delta
    assert squared_mu_of(epsilon, 0) == 0


@pytest.mark.parametrize("epsilon", [0, NANO // 10, NANO, 100 * NANO, 10**6 * NANO])
def test_delta_of_falls_with_epsilon_and_rises_with_mu(epsilon: int) -> None:
    """Also where a bound stands for the exact value."""
    least = max(epsilon * ATTO // NANO, ATTO // 100)
    found = [delta_of(round(least * factor), epsilon) for factor in np.geomspace(0.01, 100, 60)]
    assert found == sorted(found)
    assert 1 <= found[0] < found[-1] <= ATTO
    assert all(delta_of(round(least * f), epsilon + NANO) <= found[0] for f in (0.001, 0.01))


def test_pi_is_rounded_up() -> None:
    assert (
        0
        < PI - Fraction("3.14159265358979323846264338327950288419716939937510582097494459230")
        < (Fraction(1, 10**61))
    )


def odds(p: float) -> float:
    return math.log(p / (1 - p))


@given(p=st.floats(0.001, 0.999), q=st.floats(0.001, 0.999))
def test_a_release_of_a_range_costs_no_less_than_its_tests_show(p: float, q: float) -> None:
    """A test with probabilities p and q has the range logit p - logit q, and needs this μ."""
    shown = NORMAL.inv_cdf(p) - NORMAL.inv_cdf(q)
    reach = round(abs(odds(p) - odds(q)) * NANO) + 1
    assert shown**2 <= drawn_cost(reach) / ATTO * (1 + 1e-9)


def test_the_cost_of_a_draw_is_the_least_that_holds() -> None:
    """Two candidates a little apart, one of which gains a row: the test needs nearly this μ."""
    epsilon = 0.01
    p = 1 / (1 + math.exp(-epsilon / 2))
    needed = NORMAL.inv_cdf(p) - NORMAL.inv_cdf(1 - p)
    assert needed**2 == pytest.approx(drawn_cost(NANO // 100) / ATTO, rel=1e-4)
    pure = 1 / (1 + math.exp(-epsilon))  # randomised response, which is ε-DP
    needed = NORMAL.inv_cdf(pure) - NORMAL.inv_cdf(1 - pure)
    assert needed**2 == pytest.approx(pure_cost(NANO // 100) / ATTO, rel=1e-4)


@given(cost=st.integers(1, 10**24))
def test_an_epsilon_for_a_cost_costs_no_more(cost: int) -> None:
    for of, back in ((pure_cost, pure_epsilon), (drawn_cost, drawn_epsilon)):
        assert of(back(cost)) <= cost < of(back(cost) + 1)


def test_pure_costs_count_too() -> None:
    query = PlannedQuery("rows", "m", (NANO // 10, NANO // 5), times=3)
    assert query.squared_mu / ATTO == pytest.approx(3 * math.pi / 2 * (0.01 + 0.04))
    assert PlannedQuery("rows", "m", (1,)).squared_mu == 2, "rounded up"
    assert PlannedQuery("sweep", "m", (5, 6), times=2, measure=GAUSSIAN_DP).squared_mu == 22


def test_a_plan_in_squared_mu_fits_where_it_is_paid_for() -> None:
    paid = squared_mu_of(NANO, DELTA)
    first = PlannedQuery("rows", "m", (NANO // 100,))
    for rest, fits in ((paid - first.squared_mu, True), (paid - first.squared_mu + 1, False)):
        plan = Plan((first, PlannedQuery("sweep", "m", (rest,), measure=GAUSSIAN_DP)))
        assert plan.uses_delta
        assert plan.fits(NANO, DELTA) is fits
        assert not plan.fits(NANO, 0)
        account = Accountant(Plan((first,)), NANO, DELTA)
        account.spend("rows")
        if fits:
            account.replan(plan)
            account.spend("sweep")
            assert spending(account).squared_mu == paid
        else:
            with pytest.raises(PlanError):
                account.replan(plan)
    assert Plan((PlannedQuery("leaf", "m", (NANO,)),)).fits(NANO, 0)


def test_a_plan_with_a_negative_cost_never_fits() -> None:
    """It would hide that another query costs more than there is."""
    split, leaf = PlannedQuery("split", "m", (3 * NANO,)), PlannedQuery("leaf", "m", (-2 * NANO,))
    assert Plan((split, leaf)).epsilon == NANO
    assert not Plan((split, leaf)).fits(NANO, 0)
    assert not Plan((split, leaf)).fits(NANO, DELTA)


def test_costs_in_squared_mu_are_shown_as_such() -> None:
    assert (
        str(PlannedQuery("sweep", "m", (ATTO // 3,), 4, GAUSSIAN_DP))
        == "sweep: m, μ² = 0.333 × 4 attributes = 1.33"
    )
