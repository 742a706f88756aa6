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


def log_exponential(noisy: Floats, deviation: Floats | float, mean: Floats | float) -> Floats:
    """The log density of exponential numbers of that mean, with normal errors of that deviation.

    exp(s²/2m² - y/m) Φ(y/s - s/m) / m for a number y, a deviation s and a mean m. Where Φ is small,
    the first factor is large, so they are computed together.
    """
    z = noisy / deviation - deviation / mean
    tail = _log_tail(np.abs(z))
    inside = np.log1p(-np.exp(tail - z**2 / 2)) + (deviation / mean) ** 2 / 2 - noisy / mean
    outside = tail - (noisy / deviation) ** 2 / 2
    return np.where(z > 0, inside, outside) - np.log(mean)


def above_zero(means: Floats, deviation: float) -> Floats:
    """The means of normal numbers that are known to be above 0, from those without this knowledge.

    m + s φ(m/s) / Φ(m/s), at least 0.
    """
    z = means / deviation
    tail = _log_tail(np.abs(z))
    density = -math.log(2 * math.pi) / 2
    lower = np.exp(density - tail)  # φ(z) / Φ(z) for z below 0
    upper = np.exp(density - z**2 / 2) / (1 - np.exp(tail - z**2 / 2))
    found: Floats = np.maximum(means + deviation * np.where(z > 0, upper, lower), 0)
    return found


def _log_tail(z: Floats) -> Floats:
    """log(Φ(-z) exp(z²/2)) for z ≥ 0."""
    t = 1 / (1 + z / math.sqrt(8))
    powers = np.full_like(t, _ERFC[-1])
    for coefficient in _ERFC[-2::-1]:
        powers *= t
        powers += coefficient
    return np.log(t / 2) + powers
