"""Exact samplers on integers, in batches: Canonne, Kamath & Steinke, NeurIPS 2020, Alg. 1 to 3.

Every probability is exact. Random words are compared with integers only, never with floats, so
there is no pattern of roundings to attack (Mironov, CCS 2012). The time of a draw depends on the
result; timing is out of scope, and callers draw in batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.privacy.bits import Bits

LIMIT = 2**62  # bounds, and the magnitude of noise: noise plus a count fits into int64
ROOM = 16  # factor of the least radius: about one draw in thirty is rejected
MAX_DENOMINATOR = 2**53  # so that 512 rounds of a coin fit into 2^62: see `_flip`
Words = NDArray[np.uint64]


def uniform_below(bounds: Integers, bits: Bits) -> Integers:
    """Uniform on {0, …, bound − 1} for each bound in 1…2^62, any shape.

    Exact by rejection: words beyond the last whole multiple of the bound are drawn again. Raises
    `ValueError` for a bound out of range.
    """
    below = np.asarray(bounds, dtype=np.int64).ravel().astype(np.uint64)
    if below.size and not 1 <= below.min() <= below.max() <= LIMIT:
        raise ValueError("a bound must lie in 1…2^62")
    last = ~(-below % below)  # 2^64 mod b is (2^64 − b) mod b, and ~x is 2^64 − 1 − x
    return _remainders(below.size, below, last, bits).reshape(np.shape(bounds))


def uniform(size: int, bound: int, bits: Bits) -> Integers:
    """As many draws of `uniform_below` with one bound, which take less time; flat.

    Raises as `uniform_below` does.
    """
    if not 1 <= bound <= LIMIT:
        raise ValueError("a bound must lie in 1…2^62")
    last = 2**64 - 1 - 2**64 % bound
    return _remainders(size, np.uint64(bound), np.uint64(last), bits)


def _remainders(
    size: int, below: Words | np.uint64, last: Words | np.uint64, bits: Bits
) -> Integers:
    """Words modulo `below`; those above `last` are drawn again."""
    drawn = np.array(bits.words(size))
    while (late := (drawn > last).nonzero()[0]).size:
        drawn[late] = bits.words(late.size)
    return (drawn % below).astype(np.int64)


def bernoulli_exp(numerator: Integers, denominator: int, bits: Bits) -> Mask:
    """True with probability exp(−numerator / denominator), numerator ≥ 0, any shape.

    With w whole and f the rest, e^(−w−f) is w coins of e^−1 and one of e^−f, which must all show
    heads. The first tails ends it, so a huge exponent costs no more time than a small one. Raises
    `ValueError` for a negative numerator or a denominator outside 1…2^53.
    """
    if not 1 <= denominator <= MAX_DENOMINATOR or np.any(numerator < 0):
        raise ValueError("an exponent must not be negative, its denominator must lie in 1…2^53")
    whole, part = np.divmod(np.ravel(numerator), denominator)
    heads = np.ones(whole.size, dtype=np.bool_)
    pending, turn = whole.nonzero()[0], 0
    while pending.size:
        won = _flip(np.ones(pending.size, dtype=np.int64), 1, bits)
        heads[pending[~won]] = False
        turn += 1
        pending = pending[won]
        pending = pending[whole[pending] > turn]
    last = (heads & (part > 0)).nonzero()[0]
    heads[last] = _flip(part[last], denominator, bits)
    return heads.reshape(np.shape(numerator))


def _flip(part: Integers, denominator: int, bits: Bits) -> Mask:
    """Coins of e^−γ with γ = part / denominator in (0, 1], flat.

    Von Neumann's alternating series: round k continues to round k + 1 with probability γ/k. So the
    last round is k with probability γ^(k−1)/(k−1)! − γ^k/k!, which sums to e^−γ over odd k. With
    the largest denominator `uniform` refuses round 513, which has a probability of 1/512!.
    """
    heads = np.zeros(part.size, dtype=np.bool_)
    active = np.arange(part.size)
    turn = 2 if denominator == 1 else 1  # γ = 1 always passes the first round: draw no word for it
    while active.size:
        on = uniform(active.size, denominator * turn, bits) < part[active]
        heads[active[~on]] = turn % 2 == 1
        active, turn = active[on], turn + 1
    return heads


def discrete_laplace(
    size: int, scale_numerator: int, scale_denominator: int, bits: Bits
) -> Integers:
    """Integers with P(x) ∝ exp(−|x|·scale_denominator / scale_numerator), shape `[size]`.

    Let t/s be the scale. Keep u, uniform below t, with probability e^(−u/t); let v count e^−1
    heads. Then u + t·v has P(x) ∝ e^(−x/t), and its quotient by s has P(y) ∝ e^(−y·s/t). A fair
    sign follows; −0 is rejected. Raises `ValueError` for a scale outside 1…2^53 over 1…2^62, or for
    a draw of 2^62 (probability below e^−511).
    """
    t, s = _scale(scale_numerator, scale_denominator)
    found = np.empty(0, dtype=np.int64)
    while found.size < size:
        # at least half of the proposals are accepted, unless the scale is far below 1
        magnitude = _magnitudes(2 * (size - found.size) + 8, t, s, bits)
        minus = (bits.words(magnitude.size) & np.uint64(1)).astype(np.bool_)
        signed = np.where(minus, -magnitude, magnitude)
        found = np.concatenate([found, signed[~minus | (magnitude > 0)]])
    return found[:size]


def _scale(t: int, s: int) -> tuple[int, int]:
    if not (1 <= t <= MAX_DENOMINATOR and 1 <= s <= LIMIT):
        raise ValueError("a scale must be a fraction of 1…2^53 over 1…2^62")
    return t, s


def _magnitudes(proposals: int, t: int, s: int, bits: Bits) -> Integers:
    """Integers with P(y) ∝ e^(−y·s/t), y >= 0, flat; at most as many as proposed."""
    u = uniform(proposals, t, bits)
    u = u[bernoulli_exp(u, t, bits)]
    v = _geometric(u.size, bits)
    if v.size and int(v.max() + 1) * t > LIMIT:
        raise ValueError("a draw is out of range")
    magnitude: Integers = (u + t * v) // s
    return magnitude


def joint_noise(
    vectors: int, blocks: Sequence[int], scale_numerator: int, scale_denominator: int, bits: Bits
) -> Integers:
    """Integer vectors `[vector, dimension]` for the norm that is the largest L1 norm of a block.

    `blocks` are the dimensions of each block, d in all. Let a be the `least_radius`. The radius r
    is a plus d + 1 draws of P(y) ∝ e^(−y/scale), y >= 0, so P(r) ∝ C(r − a + d, d)·e^(−r/scale).
    The vector is uniform among those of norm r or less.

    Proof of the cost: P(z) ∝ f(‖z‖) with f(m) = Σ_{r ≥ m} h(r)·e^(−r/scale) and h(r) = C(r − a + d,
    d) / |ball(r)|. If h does not decrease, then f(m + 1) lies between e^(−1/scale)·f(m) and f(m).
    So a change of norm c costs c/scale.

    h does not decrease: the ball of a block of s dimensions has Σ_k 2^k·C(s, k)·C(r, k) points, k
    <= s. Of the numerator of h, this block gets s factors (r − b)(r − b − 1)… with b >= 0, because
    a >= d. Their quotient with each r(r − 1)…(r − k + 1) does not decrease.

    Raises `ValueError` as `discrete_laplace` does.
    """
    t, s = _scale(scale_numerator, scale_denominator)
    dimensions = sum(blocks)
    wanted = vectors * (dimensions + 1)
    steps = np.empty(0, dtype=np.int64)
    while steps.size < wanted:
        steps = np.concatenate([steps, _magnitudes(2 * (wanted - steps.size) + 8, t, s, bits)])
    added = steps[:wanted].reshape(vectors, dimensions + 1)
    least = least_radius(blocks)
    if int(added.max(initial=0)) > (LIMIT - least - max(blocks)) // (dimensions + 1):
        raise ValueError("a draw is out of range")  # the sum could wrap around
    radius = least + added.sum(axis=1)
    noise = np.empty((vectors, dimensions), dtype=np.int64)
    first = np.cumsum([0, *blocks])
    for size in sorted(set(blocks)):
        starts = [start for start, block in zip(first, blocks, strict=False) if block == size]
        drawn = _in_balls(np.repeat(radius, len(starts)), size, bits)
        place = np.add.outer(np.array(starts), np.arange(size)).ravel()
        noise[:, place] = drawn.reshape(vectors, -1)
    return noise


def least_radius(blocks: Sequence[int]) -> int:
    """The least radius of joint noise: large enough that few draws are rejected, for any block."""
    return ROOM * max(blocks) * sum(blocks)


def _in_balls(radius: Integers, size: int, bits: Bits) -> Integers:
    """`[ball, size]`: uniform among the integer vectors whose L1 norm is at most each radius.

    Draw `size` different places among radius + size. The gaps between them add up to at most the
    radius. Each gap gets a fair sign; −0 is rejected.
    """
    found = np.empty((radius.size, size), dtype=np.int64)
    open_ = np.arange(radius.size)
    while open_.size:
        bounds = np.repeat((radius[open_] + size)[:, None], size, axis=1)
        place = np.sort(uniform_below(bounds, bits), axis=1)
        gap = np.diff(place, axis=1, prepend=-1) - 1
        minus = (bits.words(gap.size) & np.uint64(1)).astype(np.bool_).reshape(gap.shape)
        # a gap of −1: the same place was drawn twice
        accepted = ((gap > 0) | ((gap == 0) & ~minus)).all(axis=1)
        found[open_[accepted]] = np.where(minus, -gap, gap)[accepted]
        open_ = open_[~accepted]
    return found


def discrete_gaussian(size: int, variance: Fraction, bits: Bits) -> Integers:
    """Integers with P(x) ∝ e^(−x²/2σ²), σ² = `variance`, shape `[size]`.

    A discrete Laplace draw y of scale t = ⌊σ⌋ + 1 is accepted with probability
    e^(−(|y| − σ²/t)²/2σ²). Python's integers are used, because such squares do not fit into 64
    bits. Raises `ValueError` for a variance that is not positive or above 2^104.
    """
    if not 0 < variance <= 2**104:
        raise ValueError("a variance must be positive and at most 2^104")
    n, d = variance.numerator, variance.denominator
    t = math.isqrt(n // d) + 1
    bound = 2 * n * d * t * t  # with σ² = n/d the exponent is (|y|·d·t − n)² over this
    found = np.empty(0, dtype=np.int64)
    while found.size < size:
        proposals = discrete_laplace(2 * (size - found.size) + 8, t, 1, bits)
        squares = (np.abs(proposals).astype(object) * (d * t) - n) ** 2
        whole, part = squares // bound, squares % bound
        accepted = bernoulli_exp(whole.astype(np.int64), 1, bits)
        accepted[accepted] = [not p or _big_flip(p, bound, bits) for p in part[accepted]]
        found = np.concatenate([found, proposals[accepted]])
    return found[:size]


def _big_flip(part: int, denominator: int, bits: Bits) -> bool:
    """A coin of e^−(part / denominator), with integers of any size and a ratio in (0, 1]: see
    `_flip`.
    """
    turn = 1
    while _big_uniform(denominator * turn, bits) < part:
        turn += 1
    return turn % 2 == 1


def _big_uniform(bound: int, bits: Bits) -> int:
    """Uniform on {0, …, bound − 1}, by rejection."""
    width = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(bits.words(-(-width // 64)).tobytes(), "little")
        drawn &= (1 << width) - 1
        if drawn < bound:
            return drawn


def _geometric(size: int, bits: Bits) -> Integers:
    """How many coins of e^−1 show heads before the first tails, flat."""
    count = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while active.size:
        active = active[_flip(np.ones(active.size, dtype=np.int64), 1, bits)]
        count[active] += 1
    return count
