"""Noise as it is really drawn, from both back ends, and a gate that refuses what is broken."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from chi_square import fits_gaussian, fits_laplace
from numpy.typing import NDArray
from variants import some

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy import noise as module
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import (
    CountNoise,
    ExactNoise,
    OpenDPNoise,
    finer_bits,
    gaussian_variance,
    noise_scale,
)

BITS = SecureBits()
BACK_ENDS = [ExactNoise(BITS), OpenDPNoise()]
# (sensitivity, nano-ε): scales .5 1 3 6 7 10 12.5 3.3 20/3 100
SCALES = [
    (1, 2 * NANO), (1, NANO), (3, NANO), (2, 333_333_333), (7, NANO),
    (5, NANO // 2), (25, 2 * NANO), (33, 10 * NANO), (20, 3 * NANO), (10, NANO // 10),
]  # fmt: skip
each_back_end = pytest.mark.parametrize("noise", BACK_ENDS, ids=lambda noise: noise.name)
each_scale = pytest.mark.parametrize(("sensitivity", "epsilon"), SCALES)


def test_the_scale_of_noise_is_the_sensitivity_over_epsilon() -> None:
    assert noise_scale(NANO // 2, 3) == 6
    assert gaussian_variance(4 * ATTO, 9) == Fraction(9, 4)


def draw(noise: CountNoise, draws: int, epsilon: int, sensitivity: int) -> NDArray[np.int64]:
    counts = np.full((draws // 5, 5), 1000)
    noisy = noise.laplace(counts, epsilon, sensitivity)
    return np.ravel(noisy - counts)


@each_scale
@each_back_end
def test_counts_get_the_noise_that_is_claimed(
    noise: CountNoise, sensitivity: int, epsilon: int
) -> None:
    draws = draw(noise, 20_000, epsilon, sensitivity)
    assert fits_laplace(draws, sensitivity * NANO / epsilon)


@pytest.mark.slow
@each_scale
@each_back_end
def test_counts_get_the_noise_that_is_claimed_on_many_draws(
    noise: CountNoise, sensitivity: int, epsilon: int
) -> None:
    draws = draw(noise, 150_000, epsilon, sensitivity)
    assert fits_laplace(draws, sensitivity * NANO / epsilon)


# (squared sensitivity, atto-μ²): standard deviations .5 1 3 12.5 √2·10 √40000 1000
GAUSSIANS = [
    (1, 4 * ATTO), (1, ATTO), (9, ATTO), (625, 4 * ATTO), (2, ATTO // 100),
    (8, ATTO // 5_000), (2**32, 2**32 * ATTO // 10**6),
]  # fmt: skip


@some(("squared", "squared_mu"), GAUSSIANS, keep=4)
@each_back_end
def test_sums_get_the_gaussian_noise_that_is_claimed(
    noise: CountNoise, squared: int, squared_mu: int
) -> None:
    sums = np.full((5000, 4), -1000)
    draws = np.ravel(noise.gaussian(sums, squared_mu, squared) - sums)
    variance = squared * ATTO / squared_mu
    assert fits_gaussian(draws, variance)
    assert not fits_gaussian(draws, variance * 1.2), "the gate sees a tenth of the deviation"
    assert not fits_gaussian(draws, variance / 1.2)


def test_opendp_grants_no_more_squared_mu_than_asked() -> None:
    """Its map gives ρ, which is μ²/2."""
    for squared, squared_mu in GAUSSIANS:
        bits = finer_bits(gaussian_variance(squared_mu, squared))
        measurement = module._gaussian(squared_mu, squared, bits)
        change = math.sqrt(squared) * (1 + 1e-15) * 2**bits
        granted, asked = 2 * Fraction(measurement.map(change)), Fraction(squared_mu, ATTO)
        assert asked * Fraction(999, 1000) <= granted <= asked * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("variance", [Fraction(1, 10**7), Fraction(1), Fraction(10**9, 7), 2**90])
def test_gaussian_noise_is_drawn_on_a_fine_grid_and_rounded(variance: Fraction) -> None:
    """So fine that the discrete Gaussian is normal up to a factor that its docstring bounds."""
    factor = 1510**2 / 8 / 4**module.FINE  # of one draw, at the largest ε
    assert 2 * 10**9 * factor < 1 / NANO, "a billion draws on two neighbours"
    bits = finer_bits(Fraction(variance))
    assert variance * 4**bits >= 4**module.FINE
    assert not bits or variance * 4 ** (bits - 2) < 4**module.FINE
    steps = np.array([-(2**bits), -(2**bits) // 2 - 1, 0, 2**bits // 2 - 1, 2**bits // 2, 2**bits])
    assert not bits or module._rounded(steps, bits).tolist() == [-1, -1, 0, 0, 1, 1]


@pytest.mark.parametrize("sigma", [2**6, 2**10])
def test_a_discrete_gaussian_is_normal_up_to_the_stated_factor(sigma: int) -> None:
    """The factor e^±c with c = max(1, (y/σ)²) / 8σ², where floats still show it."""
    y = np.arange(-5 * sigma, 5 * sigma + 1)
    weights = np.exp(-(y**2) / 2 / sigma**2) / (sigma * math.sqrt(2 * math.pi))
    normal = NormalDist(0, sigma)
    edges = np.array([normal.cdf(-abs(float(each)) - 0.5) for each in (*y, y[-1] + 1)])
    inner = np.array([normal.cdf(-abs(float(each)) + 0.5) for each in y])
    factor = np.abs(np.log(weights / (inner - edges[:-1])))
    assert (factor <= np.maximum(1, (y / sigma) ** 2) / 8 / sigma**2 + 1e-12).all()


@each_back_end
def test_noise_is_added_to_each_count_in_its_place(noise: CountNoise) -> None:
    counts = np.arange(24).reshape(2, 3, 4) * 10**15 - 10**16
    noisy = noise.laplace(counts, 50 * NANO, 1)
    assert noisy.dtype == np.int64
    assert (noisy == counts).mean() > 0.5  # ε = 50: nothing is added but once in 10^21 times
    assert noise.laplace(counts[:, :0], NANO, 1).shape == (2, 0, 4)


@each_back_end
def test_a_dropped_sensitivity_does_not_pass(noise: CountNoise) -> None:
    draws = draw(noise, 20_000, NANO, 1)
    assert not fits_laplace(draws, 2.0)


@pytest.mark.parametrize("scale", [3, 10])
def test_a_sampler_with_the_right_variance_and_the_wrong_shape_does_not_pass(scale: int) -> None:
    """OpenDP 0.14.1 had a variance within 1.6 % and up to twice the claimed ε."""
    half = 75_000
    narrow, wide = (
        draw(ExactNoise(BITS), half, round(NANO / (scale * math.sqrt(share))), 1)
        for share in (0.5, 1.5)
    )
    faulty = np.concatenate([narrow, wide])
    sound = draw(ExactNoise(BITS), 2 * half, NANO // scale, 1)
    q = math.exp(-1 / scale)
    assert abs(sound.var() / (2 * q / (1 - q) ** 2) - 1) < 0.05
    assert abs(faulty.var() / (2 * q / (1 - q) ** 2) - 1) < 0.05
    assert fits_laplace(sound, scale)
    assert not fits_laplace(faulty, scale)


@pytest.mark.parametrize("epsilon", [1, 7, 333_333_333, NANO, 2 * NANO + 1, 10**6 * NANO])
@pytest.mark.parametrize("sensitivity", [1, 3, 10**6])
def test_opendp_grants_no_more_than_epsilon(epsilon: int, sensitivity: int) -> None:
    granted = Fraction(module._laplace(epsilon, sensitivity).map(sensitivity))
    assert Fraction(epsilon, NANO) * Fraction(999_999, 10**6) < granted <= Fraction(epsilon, NANO)


def test_the_float_of_epsilon_is_never_above_it() -> None:
    for nano in (1, 3, 100_000_000, 333_333_333, 700_000_001, 10**15 - 1):
        exact = Fraction(nano, NANO)
        below = module._float_below(exact)
        assert Fraction(below) <= exact < Fraction(math.nextafter(below, math.inf))


@each_back_end
@pytest.mark.parametrize(
    ("counts", "epsilon", "sensitivity"),
    [
        (np.zeros(3, dtype=np.int64), 0, 1),
        (np.zeros(3, dtype=np.int64), NANO, 0),
        (np.zeros(3, dtype=np.int64), -NANO, 1),
        (np.zeros(3), NANO, 1),
    ],
)
def test_arguments_that_no_caller_should_pass(
    noise: CountNoise, counts: NDArray[np.int64], epsilon: int, sensitivity: int
) -> None:
    with pytest.raises(ValueError, match=r"ε|counts"):
        noise.laplace(counts, epsilon, sensitivity)


@each_back_end
def test_a_count_of_any_size_gets_noise_and_never_raises(noise: CountNoise) -> None:
    """Counts are private, so one above the limit is replaced by the limit and raises nothing."""
    most, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    huge = np.array([[most, least, 2**62, 5]])
    limits = np.array([[2**62 - 1, 1 - 2**62, 2**62 - 1, 5]])
    budget = 50 * NANO  # so that the noise is 0, but for one draw in 10^21
    assert (noise.laplace(huge, budget, 1) == limits).all()
    assert (noise.gaussian(huge, 10**3 * ATTO, 1) == limits).all()
    joint = noise.joint(huge, (1, 3), budget, 2**20)
    assert (abs(joint - limits) < 2**40).all()


@each_back_end
def test_gaussian_noise_that_64_bits_could_limit_is_refused(noise: CountNoise) -> None:
    """The sum would be added to a limited draw, and show."""
    zero, squared = np.zeros(20, dtype=np.int64), (2**16 * 10**6) ** 2
    with pytest.raises(ValueError, match="variance"):
        noise.gaussian(zero, 1, squared)
    assert len(set(noise.gaussian(zero, 10**9, squared).tolist())) == 20


def test_an_error_of_opendp_quotes_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(epsilon: int, sensitivity: int) -> object:
        def measure(counts: list[int]) -> None:
            raise RuntimeError(f"cannot handle {counts}")

        return measure

    monkeypatch.setattr(module, "_laplace", broken)
    with pytest.raises(DpforestError) as caught:
        OpenDPNoise().laplace(np.array([4711]), NANO, 1)
    assert "4711" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_opendp_is_imported_only_when_noise_is_drawn() -> None:
    code = (
        "import sys; from dpforest_duckdb.privacy.noise import OpenDPNoise; OpenDPNoise();"
        "sys.exit('opendp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_noise_does_not_import_the_large_packages_that_opendp_can_use() -> None:
    code = (
        "import sys, numpy as np; from dpforest_duckdb.privacy.noise import OpenDPNoise;"
        "OpenDPNoise().laplace(np.zeros(3, dtype=np.int64), 10**9, 1);"
        "sys.exit(bool({'sklearn', 'scipy', 'pandas', 'polars'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@each_back_end
def test_empty_cells_have_noise_too(noise: CountNoise) -> None:
    """Cells that GROUP BY leaves out get noise too. Otherwise a zero would show."""
    noisy = noise.laplace(np.zeros(2000, dtype=np.int64), NANO, 1)
    zero = np.tanh(0.5)  # P(no noise) at ε = 1
    assert (noisy == 0).mean() == pytest.approx(zero, abs=0.07)


@each_back_end
def test_every_release_has_noise_of_its_own(noise: CountNoise) -> None:
    """The difference of two releases with the same noise would be that of the true counts."""
    counts = np.zeros(100, dtype=np.int64)
    one, other = (noise.laplace(counts, NANO // 10, 1) for _ in range(2))
    assert (one != other).mean() > 0.8


@pytest.mark.parametrize("to_all", [False, True])
def test_ctrl_c_waits_for_the_noise_and_is_not_blocked_afterwards(to_all: bool) -> None:
    """Also if another thread gets the signal, whose handler Python runs in the main one."""
    drawn, done = [], threading.Event()

    def draw() -> None:
        with module._uninterrupted():
            if to_all:
                os.kill(os.getpid(), signal.SIGINT)
            else:
                signal.raise_signal(signal.SIGINT)
            time.sleep(0.05)
            drawn.append(True)

    before = signal.getsignal(signal.SIGINT)
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            draw()
    finally:
        done.set()
        other.join()
    assert drawn
    assert signal.getsignal(signal.SIGINT) is before
