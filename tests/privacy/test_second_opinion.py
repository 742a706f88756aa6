"""A second opinion: OpenDP's own measurements, at the same parameters, have our distributions.

Our samplers are checked against closed forms elsewhere. Here OpenDP's independent implementations
are held against the same closed forms, and its privacy maps against the costs that we claim.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from chi_square import fits, fits_gaussian, fits_laplace
from closed_form import permute_and_flip
from numpy.typing import NDArray

from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import ExactNoise, gaussian_variance, noise_scale
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP, exponents

few_or_many = pytest.mark.parametrize(
    "draws", [2_000, pytest.param(50_000, marks=pytest.mark.slow)]
)
OURS = ExactNoise(SecureBits())
UTILITIES = ([0, -1, -2], [0, 0, -3, -5], [-7, 0, -1, -1, -1, -30], [0, -40])


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@few_or_many
@pytest.mark.parametrize(("epsilon", "k"), [(NANO, 1), (NANO // 3, 1), (2 * NANO, 7)])
def test_discrete_laplace(draws: int, epsilon: int, k: int) -> None:
    dp, scale = opendp(), float(noise_scale(epsilon, k))
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = dp.m.make_laplace(*space, scale=scale)
    assert theirs.map(k) == pytest.approx(epsilon / NANO)
    nothing = np.zeros(draws, dtype=np.int64)
    for found in (np.array(theirs(nothing.tolist())), OURS.laplace(nothing, epsilon, k)):
        assert fits_laplace(found, scale)


@few_or_many
@pytest.mark.parametrize(
    ("squared_mu", "squared"), [(ATTO // 400, 1), (ATTO // 25, 90), (ATTO // 500, 2)]
)
def test_gaussian(draws: int, squared_mu: int, squared: int) -> None:
    """Its map gives ρ, which is μ²/2. At such variances a discrete Gaussian and a rounded one are
    the same to the gate.
    """
    dp, variance = opendp(), float(gaussian_variance(squared_mu, squared))
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = dp.m.make_gaussian(*space, scale=math.sqrt(variance))
    assert theirs.map(math.sqrt(squared)) == pytest.approx(squared_mu / 2 / ATTO)
    nothing = np.zeros(draws, dtype=np.int64)
    for found in (np.array(theirs(nothing.tolist())), OURS.gaussian(nothing, squared_mu, squared)):
        assert fits_gaussian(found, variance)


@few_or_many
@pytest.mark.parametrize("utilities", UTILITIES)
@pytest.mark.parametrize("monotone", [True, False])
def test_permute_and_flip(draws: int, utilities: list[int], monotone: bool) -> None:
    """OpenDP reports the noisy maximum of exponential noise, which is the same mechanism."""
    dp, epsilon, sensitivity = opendp(), NANO, 2
    scale = float(noise_scale(epsilon, sensitivity)) * (1 if monotone else 2)
    theirs = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64", monotonic=monotone),
        dp.max_divergence(),
        scale=scale,
    )
    assert theirs.map(sensitivity) == pytest.approx(epsilon / NANO)
    calls = draws // 4  # one call gives one draw
    reported = np.array([theirs(utilities) for _ in range(calls)])
    worth = np.tile(np.array(utilities), (draws, 1))
    allowed = np.ones_like(worth, dtype=np.bool_)
    exponent = exponents(worth, allowed, epsilon, sensitivity, monotone)
    ours = PERMUTE_AND_FLIP.draw(exponent, allowed, SecureBits())
    exact = exact_chances(utilities, scale)
    for found in (reported, ours):
        assert fits(np.bincount(found, minlength=len(utilities)), exact)


def exact_chances(utilities: list[int], scale: float) -> NDArray[np.float64]:
    """The chance of each candidate, in closed form (McKenna & Sheldon 2020)."""
    coins = [Fraction(math.exp((one - max(utilities)) / scale)) for one in utilities]
    return np.array([float(chance) for chance in permute_and_flip(coins)])
