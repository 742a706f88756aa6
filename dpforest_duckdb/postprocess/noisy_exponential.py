"""Numbers with normal errors, for arrays: NumPy has no error function."""

from __future__ import annotations

import math

import numpy as np

from dpforest_duckdb.arrays import Floats

# erfc(x) = t · exp(-x² + a polynomial of t), with t = 1 / (1 + x/2), for x ≥ 0: Numerical Recipes
# (2nd edition, section 6.2), with a relative error of at most 1.2e-7
_ERFC = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


class NoisyExponential:
    """Exponential numbers of a `mean`, seen as `noisy`: with normal errors of a `deviation`.

    Given a noisy number y, a mean m and a deviation s, the number itself is normal with mean
    y - s²/m and deviation s, and known to be above 0. z is that mean divided by s.
    """

    def __init__(self, noisy: Floats, deviation: Floats | float, mean: Floats | float) -> None:
        self._scaled, self._ratio = noisy / deviation, deviation / mean
        self._mean, self._deviation = mean, deviation
        self._z = self._scaled - self._ratio
        self._tail = _log_tail(np.abs(self._z))
        self._below = np.exp(self._tail - self._z**2 / 2)  # Φ(-|z|)

    def log_density(self) -> Floats:
        """exp(s²/2m² - y/m) Φ(z) / m, without errors of large exponents: see `_log_tail`."""
        inside = np.log1p(-self._below) + self._ratio * (self._ratio / 2 - self._scaled)
        outside = self._tail - self._scaled**2 / 2
        return np.where(self._z > 0, inside, outside) - np.log(self._mean)

    def expected(self) -> Floats:
        """The means of the numbers themselves, s (z + φ(z) / Φ(z)), at least 0."""
        log_density = -math.log(2 * math.pi) / 2  # of a standard normal number at 0
        lower = np.exp(log_density - self._tail)  # φ(z) / Φ(z) for z below 0
        upper = np.exp(log_density - self._z**2 / 2) / (1 - self._below)
        ratio = np.where(self._z > 0, upper, lower)
        found: Floats = np.maximum(self._deviation * (self._z + ratio), 0)
        return found


def _log_tail(z: Floats) -> Floats:
    """log(Φ(-z) exp(z²/2)) for z ≥ 0."""
    t = 1 / (1 + z / math.sqrt(8))
    powers = np.full_like(t, _ERFC[-1])
    for coefficient in _ERFC[-2::-1]:
        powers *= t
        powers += coefficient
    return np.log(t / 2) + powers
