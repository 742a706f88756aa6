"""Exact samplers on integers, in batches: Canonne, Kamath & Steinke, NeurIPS 2020, Alg. 1 to 3.

Every probability is met exactly. No floating-point value touches randomness: words are compared
with integers only, so there is no pattern of roundings to read (Mironov, CCS 2012).
How long a draw takes depends on what is drawn: timing is out of scope, callers draw in batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.privacy.bits import Bits

LIMIT = 2**62  # bounds, and the magnitude of noise: their sum with a count stays in int64
ROOM = 16  # of the least radius: draws are refused about once in thirty
MAX_DENOMINATOR = 2**53  # leaves room for the turns of a coin below the 513th: see `_flip`


def uniform_below(bounds: Integers, bits: Bits) -> Integers:
    """Uniform on {0, …, bound − 1} for each bound in 1…2^62, any shape.

    Exact by rejection: words past the last whole multiple of the bound are drawn again.
    Raises `ValueError` for a bound out of range.
    """
    below = np.asarray(bounds, dtype=np.int64).ravel().astype(np.uint64)
    if below.size and not 1 <= below.min() <= below.max() <= LIMIT:
        raise ValueError("a bound must lie in 1…2^62")
    last = ~(-below % below)  # 2^64 mod b is (2^64 − b) mod b, and ~x is 2^64 − 1 − x
    drawn = np.array(bits.words(below.size))
    late = np.flatnonzero(drawn > last)
    while late.size:
        drawn[late] = bits.words(late.size)
        late = late[drawn[late] > last[late]]
    return (drawn % below).astype(np.int64).reshape(np.shape(bounds))


def bernoulli_exp(numerator: Integers, denominator: int, bits: Bits) -> Mask:
    """Heads with probability exp(−numerator / denominator), numerator ≥ 0, any shape.

    e^(−w−f) is w coins of e^−1 and one of e^−f, all of which must show heads; the first tails ends
    it, so that a huge exponent costs what a small one does.
    Raises `ValueError` for a negative numerator or a denominator outside 1…2^53.
    """
    if not 1 <= denominator <= MAX_DENOMINATOR or np.any(numerator < 0):
        raise ValueError("an exponent must not be negative, its denominator must lie in 1…2^53")
    whole, part = np.divmod(np.ravel(numerator), denominator)
    heads = np.ones(whole.size, dtype=np.bool_)
    owing, turn = np.flatnonzero(whole), 0
    while owing.size:
        won = _flip(np.ones(owing.size, dtype=np.int64), 1, bits)
        heads[owing[~won]] = False
        turn += 1
        owing = owing[won]
        owing = owing[whole[owing] > turn]
    last = np.flatnonzero(heads & (part > 0))
    heads[last] = _flip(part[last], denominator, bits)
    return heads.reshape(np.shape(numerator))


def _flip(part: Integers, denominator: int, bits: Bits) -> Mask:
    """Coins of e^−γ with γ = part / denominator in (0, 1], flat.

    Von Neumann's alternating series: turn k goes on to turn k + 1 with probability γ/k. So the last
    turn is k with probability γ^(k−1)/(k−1)! − γ^k/k!, which sums to e^−γ over odd k.
    With the largest denominator `uniform_below` refuses turn 513, which comes once in 512! times.
    """
    heads = np.zeros(part.size, dtype=np.bool_)
    active = np.arange(part.size)
    turn = 2 if denominator == 1 else 1  # γ = 1 always passes the first turn: no word spent on it
    while active.size:
        bound = np.full(active.size, denominator * turn, dtype=np.int64)
        on = uniform_below(bound, bits) < part[active]
        heads[active[~on]] = turn % 2 == 1
        active, turn = active[on], turn + 1
    return heads


def discrete_laplace(
    size: int, scale_numerator: int, scale_denominator: int, bits: Bits
) -> Integers:
    """Integers with P(x) ∝ exp(−|x|·scale_denominator / scale_numerator), shape `[size]`.

    With t/s the scale: u below t is kept with e^(−u/t) and v counts e^−1 heads, so that u + t·v has
    P(x) ∝ e^(−x/t), and its quotient by s has P(y) ∝ e^(−y·s/t); then a fair sign, −0 refused.
    Raises `ValueError` for a scale outside 1…2^53 over 1…2^62, or at 2^62 (chance below e^−511).
    """
    t, s = _scale(scale_numerator, scale_denominator)
    found = np.empty(0, dtype=np.int64)
    while found.size < size:
        # Half of the proposals or more are kept, unless the scale is far below 1.
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
    """Integers with P(y) ∝ e^(−y·s/t), y >= 0, flat; fewer than the proposals."""
    u = uniform_below(np.full(proposals, t, dtype=np.int64), bits)
    u = u[bernoulli_exp(u, t, bits)]
    v = _geometric(u.size, bits)
    if v.size and int(v.max() + 1) * t > LIMIT:
        raise ValueError("a draw is out of range")
    magnitude: Integers = (u + t * v) // s
    return magnitude


def joint_noise(
    vectors: int, blocks: Sequence[int], scale_numerator: int, scale_denominator: int, bits: Bits
) -> Integers:
    """Integer vectors `[vector, dimension]` for a norm that is the largest of the blocks' L1 norms.

    `blocks` are the dimensions of each, d in all. A vector is uniform among those of norm r or
    less where r is a, the `least_radius`, and d + 1 draws of P(y) ∝ e^(−y/scale), each y >= 0: so
    P(r) ∝ C(r − a + d, d)·e^(−r/scale).

    Then P(z) ∝ f(‖z‖) with f(m) = Σ_{r ≥ m} h(r)·e^(−r/scale) and h(r) = C(r − a + d, d) /
    |ball(r)|. From m to m + 1 f falls, and to no less than e^(−1/scale) times as much, as h does
    not fall: a block of s has a ball of Σ_k 2^k·C(s, k)·C(r, k), k <= s; of the numerator it gets s
    factors (r − b)(r − b − 1)… with b >= 0, as a >= d, and their quotient with each
    r(r − 1)…(r − k + 1) does not fall. So a change of norm c costs c/scale.
    Raises `ValueError` as `discrete_laplace` does.
    """
    t, s = _scale(scale_numerator, scale_denominator)
    dimensions = sum(blocks)
    wanted = vectors * (dimensions + 1)
    steps = np.empty(0, dtype=np.int64)
    while steps.size < wanted:
        steps = np.concatenate([steps, _magnitudes(2 * (wanted - steps.size) + 8, t, s, bits)])
    more = steps[:wanted].reshape(vectors, dimensions + 1).sum(axis=1)
    radius = least_radius(blocks) + more
    noise = np.empty((vectors, dimensions), dtype=np.int64)
    first = np.cumsum([0, *blocks])
    for size in sorted(set(blocks)):
        own = [start for start, block in zip(first, blocks, strict=False) if block == size]
        drawn = _in_balls(np.repeat(radius, len(own)), size, bits)
        place = np.add.outer(np.array(own), np.arange(size)).ravel()
        noise[:, place] = drawn.reshape(vectors, -1)
    return noise


def least_radius(blocks: Sequence[int]) -> int:
    """The least radius of joint noise: so large that few draws are refused for any block."""
    return ROOM * max(blocks) * sum(blocks)


def _in_balls(radius: Integers, size: int, bits: Bits) -> Integers:
    """`[ball, size]`: uniform among the integer vectors with an L1 norm of each radius or less.

    `size` different places among radius + size leave gaps that add up to the radius or less; a
    fair sign for each gap, −0 refused.
    """
    found = np.empty((radius.size, size), dtype=np.int64)
    open_ = np.arange(radius.size)
    while open_.size:
        bounds = np.repeat((radius[open_] + size)[:, None], size, axis=1)
        place = np.sort(uniform_below(bounds, bits), axis=1)
        gap = np.diff(place, axis=1, prepend=-1) - 1
        minus = (bits.words(gap.size) & np.uint64(1)).astype(np.bool_).reshape(gap.shape)
        kept = ((gap > 0) | ((gap == 0) & ~minus)).all(axis=1)  # the same place twice: a gap of −1
        found[open_[kept]] = np.where(minus, -gap, gap)[kept]
        open_ = open_[~kept]
    return found


def discrete_gaussian(size: int, variance: Fraction, bits: Bits) -> Integers:
    """Integers with P(x) ∝ e^(−x²/2σ²), σ² = `variance`, shape `[size]`.

    A discrete Laplace draw y of scale t = ⌊σ⌋ + 1 is kept with probability
    e^(−(|y| − σ²/t)²/2σ²), in Python's integers: 64 bits do not hold such squares.
    Raises `ValueError` for a variance that is not positive or above 2^104.
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
        kept = bernoulli_exp(whole.astype(np.int64), 1, bits)
        kept[kept] = [not p or _big_flip(p, bound, bits) for p in part[kept]]
        found = np.concatenate([found, proposals[kept]])
    return found[:size]


def _big_flip(part: int, denominator: int, bits: Bits) -> bool:
    """A coin of e^−(part / denominator), a ratio in (0, 1] of integers of any size: see `_flip`."""
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
