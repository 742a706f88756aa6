"""Noise on counts: one interface, OpenDP's sampler or our exact one behind it."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.sampler import discrete_laplace
from dpforest_duckdb.privacy.units import NANO

Counts = NDArray[np.int64]


class CountNoise(Protocol):
    """Adds integer noise to integer counts."""

    name: str

    @property
    def private(self) -> bool: ...

    def laplace(self, counts: Counts, epsilon: int, sensitivity: int) -> Counts:
        """Discrete Laplace noise of scale sensitivity/ε on every count, any shape.

        ε-DP for `epsilon` in nano-ε when one privacy unit changes the counts by at most
        `sensitivity` in L1 (its rows, where each row falls into one cell). `counts` are private and
        must hold every cell of the public grid; what is returned may be released.
        """


class OpenDPNoise:
    """OpenDP's discrete Laplace (0.16 or newer), one vector call."""

    name = "opendp"
    private = True

    def laplace(self, counts: Counts, epsilon: int, sensitivity: int) -> Counts:
        _check(epsilon, sensitivity)
        noisy = _measurement(epsilon, sensitivity)(counts.ravel().tolist())
        return np.array(noisy, dtype=np.int64).reshape(counts.shape)


class ExactNoise:
    """Our own sampler; seeded `bits` make experiments repeatable, and not private."""

    def __init__(self, bits: Bits) -> None:
        self._bits = bits
        self.private = bits.private
        self.name = "exact" if bits.private else "seeded"

    def laplace(self, counts: Counts, epsilon: int, sensitivity: int) -> Counts:
        _check(epsilon, sensitivity)
        common = math.gcd(sensitivity * NANO, epsilon)
        noise = discrete_laplace(
            counts.size, sensitivity * NANO // common, epsilon // common, self._bits
        )
        return counts + noise.reshape(counts.shape)


def _check(epsilon: int, sensitivity: int) -> None:
    if epsilon < 1 or sensitivity < 1:
        raise ValueError("noise needs an ε and a sensitivity of at least one unit")


@cache
def _measurement(epsilon: int, sensitivity: int) -> Any:
    """OpenDP's mechanism whose own privacy map gives at most ε for the sensitivity."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise DpforestError("OpenDP is not installed: pip install 'opendp>=0.16'.") from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    # a float just below the decimal: rounding it up would promise a little too much
    claimed = math.nextafter(epsilon / NANO, 0.0)
    scale = dp.binary_search_param(
        lambda s: dp.m.make_laplace(*space, scale=s), d_in=sensitivity, d_out=claimed, T=float
    )
    return dp.m.make_laplace(*space, scale=scale)
