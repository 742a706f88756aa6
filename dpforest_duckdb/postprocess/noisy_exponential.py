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

SURE = 9.0  # errors above 0 at which Φ is 1 in double precision
FAR = 700.0  # an exponent beyond which a power of e is as good as 0 or infinite


def power(exponents: Floats) -> Floats:
    """e to the power of exponents that are about 0 or less.

    Powers are at least e^-FAR: NumPy takes several times as long for those nearest to 0.
    """
    floored = np.maximum(exponents, -FAR)
    return np.exp(floored, out=floored)


class NoisyExponential:
    """Exponential numbers that are seen with normal errors, in units of the errors' deviation.

    They are seen as `noisy` y, and `rate` r is one over their mean. Given y, the number itself is
    normal with mean z = y - r and deviation 1, and known to be above 0.
    """

    def __init__(self, noisy: Floats, rate: Floats) -> None:
        self._noisy, self._rate = noisy, rate
        self._z = noisy - rate
        self._half, self._powers = _tail(np.abs(self._z))
        self._square = self._z**2 / 2
        self._below = self._half * power(self._powers - self._square)  # Φ(-|z|)

    def density(self) -> tuple[Floats, Floats]:
        """exp(r²/2 - r·y) Φ(z), the density divided by r: a factor, and the logarithm of another.

        The factor is moderate, so exponents can be added up without overflow.
        """
        above = self._z > 0
        inside = self._rate * (self._rate / 2 - self._noisy)
        outside = self._powers - self._noisy**2 / 2
        factor = np.where(above, 1 - self._below, self._half)
        return factor, np.where(above, inside, outside)

    def expected(self) -> Floats:
        """The means of the numbers themselves, z + φ(z) / Φ(z), at least 0."""
        log_density = -math.log(2 * math.pi) / 2  # of a standard normal number at 0
        lower = np.exp(log_density - self._powers) / self._half  # φ(z) / Φ(z) for z below 0
        upper = power(log_density - self._square) / (1 - self._below)
        found: Floats = np.maximum(self._z + np.where(self._z > 0, upper, lower), 0)
        return found


def density(noisy: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """The same as `NoisyExponential.density`, in less time if most numbers are surely above 0."""
    z = noisy - rate
    near = np.flatnonzero(z < SURE)
    if 2 * len(near) > z.size:
        return NoisyExponential(noisy, rate).density()
    factor, exponent = np.ones_like(z), rate * (rate / 2 - noisy)
    near_factor, near_exponent = NoisyExponential(noisy.take(near), rate.take(near)).density()
    factor.put(near, near_factor)
    exponent.put(near, near_exponent)
    return factor, exponent


def _tail(z: Floats) -> tuple[Floats, Floats]:
    """Φ(-z) exp(z²/2) for z ≥ 0: a factor, and the logarithm of another."""
    t = 1 / (1 + z / math.sqrt(8))
    powers = t * _ERFC[-1]
    for coefficient in _ERFC[-2:0:-1]:
        powers += coefficient
        powers *= t
    powers += _ERFC[0]
    return t / 2, powers
