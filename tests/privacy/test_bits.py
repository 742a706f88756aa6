"""Sources of randomness: which can be repeated, and whether they say so."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.privacy.bits import Bits, SecureBits, SeededBits
from dpforest_duckdb.privacy.noise import ExactNoise, OpenDPNoise


def test_secure_bits_do_not_repeat_and_do_not_warn() -> None:
    with warnings.catch_warnings(action="error"):
        one, other = SecureBits(), SecureBits()
    assert one.private
    assert not np.intersect1d(one.words(1000), other.words(1000)).size


def test_secure_bits_are_those_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bit of them: a generator of NumPy is no secret, however it is seeded."""
    given = bytes(range(256)) * 4
    monkeypatch.setattr(os, "urandom", lambda n: given[:n])
    assert SecureBits().words(100).tobytes() == given[:800]


def test_seeded_bits_repeat_warn_and_are_not_private() -> None:
    with pytest.warns(NotPrivateWarning, match="not private"):
        one, other, third = SeededBits(7), SeededBits(7), SeededBits(8)
    assert not one.private
    first = one.words(1000)
    assert (first == other.words(1000)).all()
    assert not np.intersect1d(first, third.words(1000)).size
    assert not np.intersect1d(first, one.words(1000)).size


@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
@pytest.mark.parametrize("bits", [SecureBits(), pytest.param(3, id="seeded")])
def test_words_are_64_uniform_bits(bits: Bits | int) -> None:
    source = SeededBits(bits) if isinstance(bits, int) else bits
    words = source.words(20_000)
    assert words.dtype == np.uint64
    assert words.shape == (20_000,)
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=int)
    assert (abs(ones - 10_000) < 5.5 * np.sqrt(5_000)).all()  # 64 bits, 2-sided, α below 1e-5


@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
def test_noise_is_as_private_as_its_bits() -> None:
    counts = np.zeros(50, dtype=np.int64)
    drawn = [ExactNoise(SeededBits(5)).laplace(counts, 10**8, 1) for _ in range(2)]
    assert (drawn[0] == drawn[1]).all()
    assert not ExactNoise(SeededBits(5)).private
    for noise in (ExactNoise(SecureBits()), OpenDPNoise()):
        assert noise.private
        assert (noise.laplace(counts, 10**8, 1) != noise.laplace(counts, 10**8, 1)).any()
