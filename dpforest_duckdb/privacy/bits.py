"""Sources of random words: the operating system, or a seed, which gives no privacy."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.errors import NotPrivateWarning, warn


class Bits(Protocol):
    """A source of independent uniform 64-bit words; `private` if nobody can predict them."""

    @property
    def private(self) -> bool: ...

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next `n` words."""
        ...


class SecureBits:
    """The operating system's generator."""

    private = True

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class SeededBits:
    """Repeatable words for experiments: anyone who knows or guesses the seed can remove the noise.

    Warns with `NotPrivateWarning`. The seed is not stored.
    """

    private = False

    def __init__(self, seed: int) -> None:
        warn(
            "Seeded randomness is for experiments: its results are not private.", NotPrivateWarning
        )
        self._generator = np.random.PCG64(seed)

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)
