"""Densities of numbers with normal errors, against their integrals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.postprocess.noisy_exponential import NoisyExponential, density


def seen(noisy: float, deviation: float, mean: float) -> NoisyExponential:
    return NoisyExponential(np.array([noisy / deviation]), np.array([deviation / mean]))


def log_density(noisy: float, deviation: float, mean: float) -> Floats:
    factor, exponent = seen(noisy, deviation, mean).density()
    return np.log(factor / mean) + exponent


@pytest.mark.parametrize(
    ("noisy", "deviation", "mean"),
    [(3, 1, 5), (-3, 1, 5), (30, 5, 2), (-8, 5, 0.5), (500, 3, 100), (0, 1, 1), (0, 30, 1)],
)
def test_the_density_of_exponential_numbers_with_errors(
    noisy: float, deviation: float, mean: float
) -> None:
    numbers = np.linspace(0, max(noisy, 0) + 40 * deviation + 60 * mean, 1_000_001)
    error = np.exp(-(((noisy - numbers) / deviation) ** 2) / 2)
    densities = error * np.exp(-numbers / mean) / (deviation * math.sqrt(2 * math.pi) * mean)
    whole = densities.sum() - (densities[0] + densities[-1]) / 2  # the trapezoidal rule
    expected = math.log(whole * (numbers[1] - numbers[0]))
    (found,) = log_density(noisy, deviation, mean)
    assert found == pytest.approx(expected, abs=1e-6)


def test_densities_are_finite_and_exact_at_extremes() -> None:
    """Far more noise than numbers is a normal density; far less is an exponential one."""
    for noisy in (1e9, -1e9, 0.0):
        normal = -((noisy / 1e9) ** 2) / 2 - math.log(1e9 * math.sqrt(2 * math.pi))
        assert log_density(noisy, 1e9, 0.01) == pytest.approx(normal, abs=1e-6)
    (exponential,) = log_density(1e12, 1e-3, 1e3)
    assert exponential == pytest.approx(-1e9, rel=1e-8)


@pytest.mark.parametrize(
    ("noisy", "deviation", "mean"),
    [(0, 1, 1e9), (3, 1, 2), (-3, 1, 4), (-200, 7, 30), (500, 20, 9)],
)
def test_the_mean_of_a_number_that_is_seen_with_an_error(
    noisy: float, deviation: float, mean: float
) -> None:
    numbers = np.linspace(0, max(noisy, 0) + 12 * deviation, 1_000_001)
    exponent = -(((numbers - noisy) / deviation) ** 2) / 2 - numbers / mean
    likely = np.exp(exponent - exponent.max())
    (found,) = deviation * seen(noisy, deviation, mean).expected()
    assert found == pytest.approx((likely * numbers).sum() / likely.sum(), rel=1e-3)


@pytest.mark.parametrize("middle", [-50.0, 0.0, 8.0, 15.0, 500.0])
def test_leaving_out_the_tails_of_numbers_surely_above_0_changes_no_density(middle: float) -> None:
    random = np.random.default_rng(1)
    noisy, rate = random.normal(middle, 5, (3, 40, 20)), random.exponential(1, (3, 40, 20))
    expected = NoisyExponential(noisy, rate).density()
    for found, wanted in zip(density(noisy, rate), expected, strict=True):
        assert (found == wanted).all()
