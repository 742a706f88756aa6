"""Concentrated privacy: the conversion, and an accountant that adds up in ρ."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import spending

from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.plan import Plan, PlanError, PlannedQuery
from dpforest_duckdb.privacy.zcdp import delta_of, rho_of

DELTA = ATTO // 10**5


@pytest.mark.parametrize(
    ("epsilon", "rho"), [("0.1", 0.00043299), ("0.5", 0.0085055), ("1", 0.0305565)]
)
def test_the_conversion_gives_the_known_figures(epsilon: str, rho: float) -> None:
    assert rho_of(int(float(epsilon) * NANO), DELTA) / ATTO == pytest.approx(rho, rel=2e-5)


@given(epsilon=st.integers(10**4, 10**14), delta=st.integers(1, ATTO // 10))
@pytest.mark.more
def test_the_largest_rho_is_used(epsilon: int, delta: int) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    assert delta_of(rho + rho // 10**6 + 2, epsilon) > delta
    assert rho_of(epsilon, 0) == 0


@given(epsilon=st.floats(0.05, 5), delta=st.floats(1e-9, 1e-2))
@pytest.mark.more
def test_the_gaussian_mechanism_really_has_that_delta(epsilon: float, delta: float) -> None:
    """Balle & Wang 2018, (6): the exact δ of Gaussian noise of ρ = 1/2σ² is never above."""
    rho = rho_of(round(epsilon * NANO), round(delta * ATTO)) / ATTO
    sd = 1 / math.sqrt(2 * rho)

    def below(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    first, second = 1 / (2 * sd) - epsilon * sd, -1 / (2 * sd) - epsilon * sd
    assert below(first) - math.exp(epsilon) * below(second) <= delta * (1 + 1e-6)


def test_pure_costs_count_half_their_square() -> None:
    query = PlannedQuery("rows", "m", (NANO // 10, NANO // 5), times=3)
    assert query.rho == 3 * (ATTO // 100 + ATTO // 25) // 2
    assert PlannedQuery("rows", "m", (1,)).rho == 1, "rounded up"
    assert PlannedQuery("sweep", "m", (5, 6), times=2, measure="ρ").rho == 22


def test_a_plan_in_rho_fits_where_its_rho_is_paid_for() -> None:
    paid = rho_of(NANO, DELTA)
    first = PlannedQuery("rows", "m", (NANO // 100,))
    for rest, fits in ((paid - first.rho, True), (paid - first.rho + 1, False)):
        plan = Plan((first, PlannedQuery("sweep", "m", (rest,), measure="ρ")))
        assert plan.concentrated
        assert plan.fits(NANO, DELTA) is fits
        assert not plan.fits(NANO, 0)
        account = Accountant(Plan((first,)), NANO, DELTA)
        account.spend("rows")
        if fits:
            account.replan(plan)
            account.spend("sweep")
            assert spending(account).rho == paid
        else:
            with pytest.raises(PlanError):
                account.replan(plan)
    assert Plan((PlannedQuery("leaf", "m", (NANO,)),)).fits(NANO, 0)


def test_costs_in_rho_are_shown_as_such() -> None:
    assert (
        str(PlannedQuery("sweep", "m", (ATTO // 3,), 4, "ρ"))
        == "sweep: m, ρ = 0.333 × 4 attributes = 1.33"
    )
