"""The source of noise, selection and the salt."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import numpy as np

from dpforest_duckdb.privacy.bits import Bits, SecureBits, SeededBits
from dpforest_duckdb.privacy.noise import CountNoise, ExactNoise, OpenDPNoise


@dataclass(frozen=True)
class Randomness:
    """The source of noise, selection and the salt; private only with the system's generator."""

    noise: CountNoise
    bits: Bits
    salt: int = field(repr=False)

    @property
    def private(self) -> bool:
        return self.noise.private and self.bits.private

    @staticmethod
    def secure() -> Randomness:
        return Randomness(OpenDPNoise(), SecureBits(), secrets.randbits(63))

    @staticmethod
    def seeded(seed: int) -> Randomness:
        """For experiments: repeatable, and therefore not private."""
        bits = SeededBits(seed)
        return Randomness(ExactNoise(bits), bits, int(bits.words(1)[0] >> np.uint64(1)))
