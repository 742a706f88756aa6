"""Laplace and Gaussian noise for integer vectors: two back ends behind one interface.

Take a release of integers whose vector changes by at most `sensitivity` in L1 with one privacy unit
(for counts, the rows per unit). It costs ε, in pure DP, with Laplace noise of scale sensitivity/ε
(Ghosh, Roughgarden & Sundararajan, STOC 2009).

A release that changes by at most Δ in L2 costs μ², of Gaussian DP, with normal noise of variance
Δ²/μ² (see `gaussian_dp`). It is drawn as a discrete Gaussian (Canonne, Kamath & Steinke, NeurIPS
2020) on a grid so fine that σ is at least 2^40 of its steps, and then rounded to an integer, which
costs nothing. Normal noise that is rounded to this grid is exactly μ-GDP. A grid point y has the
probability of such noise up to a factor of e^±c with c = max(1, (y/σ)²) / 8σ², because the mean of
e^(-(yt + t²/2)/σ²) over t in ±1/2 lies between e^(-1/8σ²) and cosh(y/2σ²). A draw is above 80σ with
a probability below 10^-1000. Otherwise its value for a neighbour is below 1510σ at any ε that is
allowed, so that the factors of a billion draws change ε by less than 10^-9. `gaussian_dp` keeps
back as much.

A release that changes by at most `sensitivity` in another norm costs ε with noise made for that
norm (the K-norm mechanism of Hardt & Talwar, STOC 2010). OpenDP has no such mechanism, so that
sampler is our own.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import Bits, SecureBits
from dpforest_duckdb.privacy.sampler import (
    LIMIT,
    MAX_DENOMINATOR,
    discrete_gaussian,
    discrete_laplace,
    joint_noise,
    least_radius,
)

# the signals that ask a process to end; Windows has two of them
_STOPS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


class CountNoise(Protocol):
    """Adds noise to counts; `private` unless its randomness can be repeated."""

    @property
    def name(self) -> str: ...

    @property
    def private(self) -> bool: ...

    def laplace(self, counts: Integers, epsilon: int, sensitivity: int) -> Integers:
        """Noisy counts of the same shape as the private `counts`; they may be published.

        `epsilon`, in nano-ε, is the cost of the whole array. `sensitivity` bounds how much the
        whole array changes in L1 with one privacy unit. Raises `ValueError` for arguments that no
        caller should pass, and `DpforestError` if no noise can be drawn; neither quotes a count.
        """
        ...

    def gaussian(self, sums: Integers, squared_mu: int, squared: int) -> Integers:
        """Noisy sums of the same shape as the private `sums`; they may be published.

        `squared_mu`, in atto-μ², is the cost of the whole array. `squared` bounds the square of how
        much the whole array changes in L2 with one privacy unit. Raises as `laplace` does.
        """
        ...

    def joint(
        self, sums: Integers, blocks: Sequence[int], epsilon: int, sensitivity: int
    ) -> Integers:
        """Noisy sums of the same shape as the private `sums[vector, dimension]`; they may be
        published.

        `epsilon`, in nano-ε, is the cost of the whole array. `blocks` are the dimensions of each
        block of a vector. The norm of an array is the sum, over vectors, of the largest L1 norm of
        a vector's blocks; `sensitivity` bounds how much the whole array changes in that norm with
        one privacy unit. Raises as `laplace` does.
        """
        ...


FINE = 40  # the standard deviation of Gaussian noise is at least 2^FINE steps, before rounding
# OpenDP limits draws to 64 bits; one of 2^62 is then 64 standard deviations
OPENDP_VARIANCE = 2**112
LEAST_VARIANCE = 1e-9  # of a noisy count, which is about 0 at a huge ε


def noise_scale(epsilon: int, sensitivity: int) -> Fraction:
    """The scale of `laplace`'s noise: sensitivity / ε, of nano-ε `epsilon`.

    The sensitivity of counts is the rows per privacy unit. Rules that compare counts with their
    noise take it from here: the standard deviation of a noisy count is about √2 times this.
    """
    return Fraction(sensitivity * NANO, epsilon)


def gaussian_variance(squared_mu: int, squared: int) -> Fraction:
    """The variance Δ²/μ² of `gaussian`'s noise before rounding, of atto-μ² `squared_mu`."""
    return Fraction(squared * ATTO, squared_mu)


def finer_bits(variance: Fraction) -> int:
    """The least b so that noise of this variance is at least 2^FINE steps of 2^-b wide."""
    behind = 2 * FINE + 1 + variance.denominator.bit_length() - variance.numerator.bit_length()
    return max(0, -(-behind // 2))


def _rounded(noise: Integers, bits: int) -> Integers:
    """Noise on a grid of steps of 2^-bits, rounded to integers."""
    return (noise + (1 << bits >> 1)) >> bits


def laplace_deviation(epsilon: int, sensitivity: int) -> float:
    """The standard deviation of `laplace`'s noise in one count, about √2 · sensitivity / ε."""
    rate = float(1 / noise_scale(epsilon, sensitivity))
    return math.sqrt(2 * math.exp(-rate)) / -math.expm1(-rate)


def joint_deviation(blocks: Sequence[int], size: int, epsilon: int, sensitivity: int) -> float:
    """The standard deviation of `joint`'s noise in one dimension of a block of `size`."""
    rate, dimensions = float(1 / noise_scale(epsilon, sensitivity)), sum(blocks)
    # the mean of a draw for the radius; its variance is step · (1 + step)
    step = -math.exp(-rate) / math.expm1(-rate)
    mean = least_radius(blocks) + (dimensions + 1) * step
    square = mean**2 + (dimensions + 1) * step * (1 + step)
    return math.sqrt(2 * square / (size + 1) / (size + 2))


class OpenDPNoise:
    """OpenDP's integer Laplace and Gaussian, with OpenSSL's generator; one vector call per release.

    Importing OpenDP can take seconds, so it is imported when the first noise is drawn.
    """

    name = "opendp"
    private = True

    def laplace(self, counts: Integers, epsilon: int, sensitivity: int) -> Integers:
        counts = _saturated(counts, epsilon, sensitivity)
        return self._drawn(counts, lambda: _laplace(epsilon, sensitivity))

    def gaussian(self, sums: Integers, squared_mu: int, squared: int) -> Integers:
        sums = _saturated(sums, squared_mu, squared)
        variance = gaussian_variance(squared_mu, squared)
        if variance > OPENDP_VARIANCE:  # a limited draw would show the sum that it is added to
            raise ValueError("the variance of Gaussian noise must be at most 2^112")
        bits = finer_bits(variance)
        noise = self._drawn(np.zeros_like(sums), lambda: _gaussian(squared_mu, squared, bits))
        return sums + _rounded(noise, bits)

    def joint(
        self, sums: Integers, blocks: Sequence[int], epsilon: int, sensitivity: int
    ) -> Integers:
        """By our own sampler, with the system's randomness: OpenDP has no such noise."""
        return ExactNoise(SecureBits()).joint(sums, blocks, epsilon, sensitivity)

    def _drawn(self, counts: Integers, measurement: Callable[[], Any]) -> Integers:
        try:
            with _uninterrupted():
                noisy = measurement()(counts.ravel().tolist())
        except Exception:  # OpenDP's message may quote its input
            raise DpforestError(
                "OpenDP could not draw noise: install opendp 0.16 or later and check that --epsilon"
                " is not too small for the rows per privacy unit."
            ) from None
        return np.array(noisy, dtype=np.int64).reshape(counts.shape)


class ExactNoise:
    """Our own exact sampler; as private as its bits."""

    name = "exact"

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    @property
    def private(self) -> bool:
        return self._bits.private

    def laplace(self, counts: Integers, epsilon: int, sensitivity: int) -> Integers:
        counts = _saturated(counts, epsilon, sensitivity)
        scale = sampled_scale(noise_scale(epsilon, sensitivity))
        noise = discrete_laplace(counts.size, scale.numerator, scale.denominator, self._bits)
        return counts + noise.reshape(counts.shape)

    def gaussian(self, sums: Integers, squared_mu: int, squared: int) -> Integers:
        sums = _saturated(sums, squared_mu, squared)
        variance = gaussian_variance(squared_mu, squared)
        bits = finer_bits(variance)
        noise = discrete_gaussian(sums.size, variance * 4**bits, self._bits)
        return sums + _rounded(noise, bits).reshape(sums.shape)

    def joint(
        self, sums: Integers, blocks: Sequence[int], epsilon: int, sensitivity: int
    ) -> Integers:
        sums = _saturated(sums, epsilon, sensitivity)
        if sums.ndim != 2 or min(blocks, default=0) < 1 or sum(blocks) != sums.shape[1]:
            raise ValueError("the blocks must make up the dimensions of a vector")
        scale = sampled_scale(noise_scale(epsilon, sensitivity))
        return sums + joint_noise(len(sums), blocks, scale.numerator, scale.denominator, self._bits)


def _saturated(counts: Integers, cost: int, sensitivity: int) -> Integers:
    """The counts brought within ±2^62, so that the sum with noise neither wraps nor saturates.

    Two counts brought within the same bounds are no further apart than before, so neither is the
    vector, in L1, L2 and the norm of `joint`. Raises `ValueError` for other arguments that no
    caller should pass: they are public.
    """
    if cost < 1 or sensitivity < 1:
        raise ValueError("the cost (nano-ε or atto-μ²) and the sensitivity must be at least 1")
    if counts.dtype != np.int64:
        raise ValueError("counts must be 64-bit integers")
    return np.clip(counts, 1 - LIMIT, LIMIT - 1)


def sampled_scale(scale: Fraction) -> Fraction:
    """The scale, or one just above it whose numerator the sampler can use."""
    if scale.numerator <= MAX_DENOMINATOR or scale > MAX_DENOMINATOR:
        return scale
    parts = MAX_DENOMINATOR // math.ceil(scale)
    return Fraction(math.ceil(scale * parts), parts)


def _float_below(value: Fraction) -> float:
    """The largest float that is not above `value`."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C: inside OpenDP's calls to its library it can crash Python or be swallowed.

    Python runs handlers in the main thread, whichever thread the signal comes to.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[tuple[Any, ...]] = []
    handlers = {number: signal.getsignal(number) for number in _STOPS}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda *found: caught.append(found))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in caught:
            before[signal.Signals(number)](number, frame)


@cache
def _laplace(epsilon: int, sensitivity: int) -> Any:
    """OpenDP's integer Laplace at about the smallest scale whose privacy map allows ε."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    limit = _float_below(Fraction(epsilon, NANO))
    return _granting(
        limit, lambda s: dp.make_laplace(*space, scale=s), sensitivity / limit, sensitivity
    )


@cache
def _gaussian(squared_mu: int, squared: int, bits: int) -> Any:
    """OpenDP's Gaussian on a grid of steps of 2^-bits, at about the smallest scale for μ².

    Its privacy map gives ρ of zero-concentrated DP, which is μ²/2 for the same noise. The
    sensitivity is rounded up.
    """
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    limit = _float_below(Fraction(squared_mu, 2 * ATTO))
    root = math.isqrt(squared)
    change = float(root) if root * root == squared else math.nextafter(math.sqrt(squared), math.inf)
    change *= 2**bits
    scale = change / math.sqrt(2 * limit)
    return _granting(limit, lambda s: dp.make_gaussian(*space, scale=s), scale, change)


@cache
def _opendp() -> SimpleNamespace:
    """The parts of OpenDP that are used; its prelude would import scikit-learn and SciPy too."""
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    return SimpleNamespace(
        atom_domain=domains.atom_domain,
        vector_domain=domains.vector_domain,
        l1_distance=metrics.l1_distance,
        l2_distance=metrics.l2_distance,
        make_laplace=measurements.make_laplace,
        make_gaussian=measurements.make_gaussian,
    )


def _granting(limit: float, make: Callable[[float], Any], scale: float, change: float) -> Any:
    """A measurement whose privacy map gives at most `limit` for `change`, at a scale near `scale`.

    The scale is raised by a few roundings if the map needs more. All arguments are public.
    """
    for _ in range(8):
        measurement = make(scale)
        if measurement.map(change) <= limit:
            return measurement
        scale *= 1 + 2**-50
    raise ValueError("OpenDP's privacy map gives more than the limit")
