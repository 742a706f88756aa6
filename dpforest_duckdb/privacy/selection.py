"""Selection in many nodes at once: permute-and-flip and the exponential mechanism, exactly.

Both draw from coins of probability exp(-exponent), where the exponent of a candidate is what its
utility lacks to the best one, times ε/(2Δ), or ε/Δ if the utility is monotone (adding a unit moves
every candidate's utility into one direction, by at most Δ).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.sampler import bernoulli_exp, uniform_below
from dpforest_duckdb.privacy.units import NANO

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Mechanism = Literal["permute-and-flip", "exponential"]


@dataclass(frozen=True)
class Exponents:
    """Exact exponents `[node, candidate]`: whole + numerator/denominator, all at least zero."""

    whole: Integers
    numerator: Integers
    denominator: int

    def coins(self, where: Mask, bits: Bits) -> Mask:
        """A coin of probability exp(-exponent) where asked for, tails elsewhere."""
        heads = np.zeros(where.shape, dtype=np.bool_)
        heads[where] = self.flip(where, bits)
        return heads

    def flip(self, at: Any, bits: Bits) -> Mask:
        """The coins of the exponents at an index: e^-(w + f) is a coin of e^-w and one of e^-f."""
        heads = bernoulli_exp(self.whole[at], 1, bits)
        heads[heads] = bernoulli_exp(self.numerator[at][heads], self.denominator, bits)
        return heads


def exponents(
    utilities: Integers, allowed: Mask, epsilon: int, sensitivity: int, *, monotone: bool
) -> Exponents:
    """The exponents of integer `utilities[node, candidate]` (private) for one draw per node.

    `epsilon` in nano-ε; `sensitivity` of the utility for one privacy unit; `allowed` is public.
    Exact: an exponent is gap·ε/(sensitivity·(2 or 1)) as an integer and a proper fraction.
    Raises `ValueError` for a node without an allowed candidate.
    """
    if epsilon < 1 or sensitivity < 1:
        raise ValueError("selection needs an ε and a sensitivity of at least one unit")
    _check(allowed)
    best = np.where(allowed, utilities, np.iinfo(np.int64).min).max(axis=1, keepdims=True)
    gap = np.where(allowed, best - utilities, 0)
    denominator = sensitivity * NANO * (1 if monotone else 2)
    common = gcd(epsilon, denominator)
    times, denominator = epsilon // common, denominator // common
    if int(gap.max(initial=0)) * times < 2**63:
        product = gap * times
    else:  # too large for 64 bits: the same in Python's integers
        product = gap.astype(object) * times
    return Exponents(
        (product // denominator).astype(np.int64),
        (product % denominator).astype(np.int64),
        denominator,
    )


def select(mechanism: Mechanism, weights: Exponents, allowed: Mask, bits: Bits) -> Integers:
    """One allowed candidate per node, `[node]`: the released choice."""
    draw = permute_and_flip if mechanism == "permute-and-flip" else exponential
    return draw(weights, allowed, bits)


def permute_and_flip(weights: Exponents, allowed: Mask, bits: Bits) -> Integers:
    """McKenna & Sheldon 2020, Algorithm 1, for all nodes at once.

    The paper flips candidates' coins in a random order and takes the first heads. The first heads
    in a uniform order is uniform among all heads, so flipping every coin and drawing among the
    heads is the same. A best candidate's exponent is zero: heads always, so one there is.
    """
    _check(allowed)
    heads = weights.coins(allowed, bits)
    return _uniform(heads, bits)


def exponential(weights: Exponents, allowed: Mask, bits: Bits) -> Integers:
    """The exponential mechanism (McSherry & Talwar 2007) by rejection.

    A uniform candidate is kept with its coin, else drawn anew: so P ∝ exp(-exponent).
    """
    _check(allowed)
    chosen = np.full(len(allowed), -1, dtype=np.int64)
    pending = np.arange(len(allowed))
    while len(pending):
        proposal = _uniform(allowed[pending], bits)
        at = pending, proposal
        kept = weights.flip(at, bits)
        chosen[pending[kept]] = proposal[kept]
        pending = pending[~kept]
    return chosen


def _uniform(among: Mask, bits: Bits) -> Integers:
    """A uniform choice among the true entries of each row."""
    rank = uniform_below(among.sum(axis=1), bits)
    return (among.cumsum(axis=1) > rank[:, None]).argmax(axis=1)


def _check(allowed: Mask) -> None:
    if allowed.shape[1] == 0 or not allowed.any(axis=1).all():
        raise ValueError("a node without a candidate cannot be split")
