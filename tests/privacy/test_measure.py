"""What a cost buys in each measure: the noise, its size, and the ε of draws."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.gaussian_dp import squared_mu_of
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure, l2_squared
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP

each_measure = pytest.mark.parametrize("measure", [PURE_DP, GAUSSIAN_DP], ids=str)
NOISE = ExactNoise(SecureBits())
DRAWS = 40_000


@each_measure
def test_sums_have_the_variance_that_is_stated(measure: Measure) -> None:
    cost, change = measure.unit // 50, 7
    nothing = np.zeros(DRAWS, dtype=np.int64)
    there = np.var(measure.noisy_sums(NOISE, nothing, cost, change))
    assert there == pytest.approx(float(measure.variance(cost, change)), rel=0.08)


@each_measure
def test_blocks_have_the_deviation_that_is_stated(measure: Measure) -> None:
    cost, change, blocks = measure.unit // 50, 7, (1, 3)
    nothing = np.zeros((DRAWS // 2, 4), dtype=np.int64)
    there = measure.noisy_blocks(NOISE, nothing, blocks, cost, change).std(axis=0)
    stated = [measure.block_deviation(blocks, size, cost, change) for size in (1, 3, 3, 3)]
    assert there == pytest.approx(np.array(stated), rel=0.05)


def test_the_norm_of_blocks_bounds_the_change_in_l2() -> None:
    """The largest L1 norm of a vector's blocks, summed over vectors, times √d."""
    blocks, random = (1, 3, 2), np.random.default_rng(0)
    ends = np.cumsum(blocks)[:-1]
    largest = 0.0
    for vectors in (1, 2, 4):
        for _ in range(500):
            change = random.integers(-9, 10, (vectors, 6)) * (random.random((vectors, 6)) < 0.4)
            sizes = [abs(block).sum(axis=1) for block in np.split(change, ends, axis=1)]
            bound = l2_squared(blocks, int(np.max(sizes, axis=0).sum()))
            assert (change**2).sum() <= bound
            largest = max(largest, float((change**2).sum() / max(bound, 1)))
    assert largest > 0.7
    alike = np.array([5, 5, 0, 0, 0, 5])
    assert (alike**2).sum() == l2_squared(blocks, 5), "nothing smaller would do"


@each_measure
def test_a_scaled_bound_allows_the_same_noise_in_scaled_sums(measure: Measure) -> None:
    one = measure.variance(measure.unit, 2)
    assert measure.variance(measure.unit, measure.scaled(2, 5)) == 25 * one


@each_measure
def test_what_a_cost_buys_costs_no_more(measure: Measure) -> None:
    for cost in (measure.unit // 1000, measure.unit // 7, 3 * measure.unit):
        drawn, pure = measure.drawn_epsilon(cost), measure.pure_epsilon(cost)
        assert measure.drawn_cost(drawn) <= cost < measure.drawn_cost(drawn + 1)
        asked = [Plan((PlannedQuery("mixture", "m", (each,)),)) for each in (pure, pure + 1)]
        assert measure.spent(asked[0]) <= cost < measure.spent(asked[1])


def test_a_draw_in_squared_mu_is_by_the_mechanism_that_it_is_priced_for() -> None:
    """Permute-and-flip at the same ε costs four times as much."""
    assert (PURE_DP.mechanism, GAUSSIAN_DP.mechanism) == (PERMUTE_AND_FLIP, EXPONENTIAL)
    cost = ATTO // 100
    half = GAUSSIAN_DP.drawn_epsilon(cost) / 2
    assert GAUSSIAN_DP.pure_epsilon(cost) == pytest.approx(half, abs=1)
    assert PURE_DP.pure_epsilon(cost) == PURE_DP.drawn_epsilon(cost) == cost


def test_a_budget_allows_epsilon_or_the_squared_mu_of_its_delta() -> None:
    delta = ATTO // 10**5
    assert PURE_DP.allowed(NANO, delta) == NANO
    assert GAUSSIAN_DP.allowed(NANO, delta) == squared_mu_of(NANO, delta) > 0
    assert GAUSSIAN_DP.allowed(NANO, 0) == 0


@each_measure
def test_parts_keep_a_weighted_sum_of_variances_least(measure: Measure) -> None:
    """Parts of ε in proportion to the cube roots of the weights make it least in ε."""
    weights = {1: 1, 2: 8, 3: 27}  # by the part of ε
    parts = {percent: measure.part(Fraction(percent)) for percent in weights}

    def noise(parts: dict[int, int | Fraction]) -> float:
        whole = sum(parts.values())
        costs = {percent: int(measure.unit * part / whole) for percent, part in parts.items()}
        return sum(w * float(measure.variance(costs[p], 1)) for p, w in weights.items())

    for percent in weights:
        for factor in (Fraction(9, 10), Fraction(11, 10)):
            assert noise(parts) < noise({**parts, percent: parts[percent] * factor})


def test_measures_are_written_as_before() -> None:
    """Plans of old models have these words."""
    assert [str(measure) for measure in (PURE_DP, GAUSSIAN_DP)] == ["ε", "μ²"]
    assert str(PlannedQuery("sweep", "m", (NANO // 4,))) == "sweep: m, ε = 0.25"
    assert (PURE_DP.json_key, GAUSSIAN_DP.json_key) == ("epsilon", "mu_squared")


@each_measure
def test_a_copy_of_a_measure_is_the_same_measure(measure: Measure) -> None:
    copied = pickle.loads(pickle.dumps(measure)), copy.deepcopy(measure)
    assert set(copied) == {measure}
    assert PURE_DP != GAUSSIAN_DP
