"""Steps of boosting: bounded, and smaller where there is noise."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest_duckdb.postprocess.newton_steps import LEAST_HESSIAN, STEP_WIDTHS, StepWidths, steps


def first_steps(
    gradients: np.ndarray,
    hessians: np.ndarray,
    variance: float,
    ordered: int = 0,
    largest: float = 2.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Steps before which there were no others."""
    return steps(gradients, hessians, variance, ordered, largest=largest, widths=StepWidths())


@settings(deadline=None)
@given(st.integers(2, 40), st.floats(1e-3, 1e6), st.integers(0, 2**20), st.booleans())
def test_steps_are_bounded_and_shrink_with_noise(
    values: int, variance: float, seed: int, ordered: bool
) -> None:
    random = np.random.default_rng(seed)
    gradients, hessians = random.normal(0, 50, values), random.normal(20, 40, values)

    def taken(gradients: np.ndarray, variance: float) -> np.ndarray:
        return first_steps(gradients, hessians, variance, values if ordered else 0)[0]

    found = taken(gradients, variance)
    assert found.shape == (values,)
    assert np.abs(found).max() <= 2
    noisier = taken(gradients, 1e9)
    assert np.abs(noisier).max() < 0.2
    zero = taken(0 * gradients, variance)
    assert np.abs(zero).max() < 1e-9


@pytest.mark.parametrize("ordered", [0, 12])
def test_the_noise_in_steps_is_as_stated(ordered: int) -> None:
    """Steps from the same sums with fresh noise; models share weight, so to first order only."""
    random = np.random.default_rng(1)
    hessians = np.linspace(20.0, 200.0, 12)
    gradients, variance = np.sin(np.arange(12) / 3) * hessians, 15.0**2
    found = [
        first_steps(gradients + random.normal(0, 15, 12), hessians, variance, ordered)
        for _ in range(200)
    ]
    taken, stated = map(np.array, zip(*found, strict=True))
    ratio = taken.std(axis=0) / np.sqrt((stated**2).mean(axis=0))
    assert ratio.min() > 0.7
    assert ratio.max() < 1.4


@pytest.mark.parametrize("largest", [1.0, 2.0])
def test_a_step_is_bounded_if_hessians_are_almost_zero(largest: float) -> None:
    """A model that is overconfident in a wrong class has large gradients and tiny hessians."""
    gradients, hessians = np.array([-500.0, 400.0, 300.0]), np.array([3.0, 2.0, 4.0])
    found, _ = first_steps(gradients, hessians, 1.0, largest=largest)
    assert (np.abs(found) <= largest).all()
    assert (np.sign(found) == np.sign(gradients)).all()
    assert (np.abs(found) > largest / 2).all()


def test_a_step_from_hardly_any_rows_is_that_of_a_quarter_of_one() -> None:
    """Noise can take a hessian to 0 or below."""
    least, *found = (
        first_steps(np.array([0.1]), np.array([hessian]), 1e-6)[0].item()
        for hessian in (LEAST_HESSIAN, 0.0, -3.0)
    )
    assert 0 < least < 0.1 / LEAST_HESSIAN
    assert found == [least, least]


def test_steps_of_many_values_without_an_order_take_little_memory() -> None:
    """A matrix of 20,000 values times themselves would take 3 GB."""
    gradients, hessians = np.full(20_000, 30.0), np.full(20_000, 10.0)
    tracemalloc.start()
    found, deviation = first_steps(gradients, hessians, 4.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**8
    assert found == pytest.approx(found[0])
    assert 1 < found[0] <= 2  # Newton's step is 3
    assert deviation == pytest.approx(deviation[0])


def test_steps_stay_near_zero_where_those_before_were_noise() -> None:
    """And the widths of informative attributes are learnt from them in the same way."""
    random = np.random.default_rng(1)
    hessians, sums = np.full(4, 100.0), random.normal(0, 30, 4)
    alone, _ = first_steps(sums, hessians, 900.0)
    for width in (0.0, 1.0):
        widths = StepWidths()
        for _ in range(50):
            drawn = random.normal(0, width, 4) * hessians + random.normal(0, 30, 4)
            steps(drawn, hessians, 900.0, largest=2, widths=widths)
        assert widths.weights.sum() == pytest.approx(1)
        nearest = np.abs(np.array(STEP_WIDTHS) - width).argmin()
        assert widths.weights.argmax() == nearest
        after, _ = steps(sums, hessians, 900.0, largest=2, widths=widths)
        assert (np.abs(after) < np.abs(alone)).all() == (width == 0)
