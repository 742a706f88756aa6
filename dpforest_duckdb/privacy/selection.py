"""Drawing one candidate for every node at once: permute-and-flip and the exponential mechanism.

There are two layers. `exponents` turns private utilities into exponents x ≥ 0, calibrated to ε. A
`Mechanism` turns exponents into a choice, with coins of exactly e^−x. A published calibration
passes its own exponents, `rounded`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.sampler import LIMIT, MAX_DENOMINATOR, bernoulli_exp, uniform_below

MOST_PROPOSALS = 2**16  # at a time


@dataclass(frozen=True)
class Exponents:
    """`whole` + `numerator` / `denominator`, exact and ≥ 0, `[node, candidate]`; private.

    The best allowed candidate of a node has exponent 0. The exponent of a candidate that is not
    allowed is 0 too, and has no meaning.
    """

    numerator: Integers
    denominator: int
    whole: Integers | None = None

    @classmethod
    def rounded(cls, exponents: Floats) -> Exponents:
        """Exponents as a paper computes them, rounded to 2^-20, and 2^30 at most."""
        parts = np.rint(np.minimum(exponents, 2.0**30) * 2**20).astype(np.int64)
        return cls(parts, 2**20)

    def coins(self, index: tuple[NDArray[np.intp], ...], bits: Bits) -> Mask:
        """A coin of e^−exponent for each (node, candidate); e^−(w+f) is two coins, both heads."""
        heads = bernoulli_exp(self.numerator[index], self.denominator, bits)
        if self.whole is not None:
            heads[heads] = bernoulli_exp(self.whole[index][heads], 1, bits)
        return heads


def exponents(
    utilities: Integers, allowed: Mask, epsilon: int, sensitivity: int, monotone: bool
) -> Exponents:
    """Exponents that make either mechanism cost ε: gap · ε / Δ, halved unless monotone.

    `utilities[node, candidate]` are private. `allowed` is public and has the same shape. `epsilon`
    is in nano-ε. `sensitivity` Δ bounds the change of any one utility with one privacy unit, summed
    over the nodes. `monotone` means that all utilities change in the same direction. The gap is the
    distance to the best allowed candidate of the node.

    The result is exact, with two exceptions. A rate whose denominator is above 2^53 is rounded
    down. Gaps are limited, so that exponents stay below 2^62. Neither raises the cost. Products
    that exceed int64 are computed in Python's integers and split into whole and rest. Raises
    `ValueError` if a node has no allowed candidate, or for an ε or Δ below 1.
    """
    if epsilon < 1 or sensitivity < 1:
        raise ValueError("ε in nano-ε and the sensitivity must be at least 1")
    if not allowed.any(axis=1).all():
        raise ValueError("every node needs an allowed candidate")
    utilities = np.clip(utilities, 1 - LIMIT, LIMIT - 1)
    best = np.max(utilities, axis=1, keepdims=True, initial=-LIMIT, where=allowed)
    gap = np.where(allowed, best - np.where(allowed, utilities, best), 0)
    rate = Fraction(epsilon, sensitivity * NANO * (1 if monotone else 2))
    if rate.denominator > MAX_DENOMINATOR:  # rounded down, which costs no more than ε
        rate = Fraction(math.floor(rate * MAX_DENOMINATOR), MAX_DENOMINATOR)
    if not rate:
        return Exponents(np.zeros_like(gap), 1)
    gap = np.minimum(gap, min(math.floor((LIMIT - 1) / rate), 2 * LIMIT - 1))
    if int(gap.max(initial=0)) * rate.numerator < LIMIT:
        return Exponents(gap * rate.numerator, rate.denominator)
    product = gap.astype(object) * rate.numerator
    rest, whole = product % rate.denominator, product // rate.denominator
    return Exponents(rest.astype(np.int64), rate.denominator, whole.astype(np.int64))


def permute_and_flip(exponent: Exponents, allowed: Mask, bits: Bits) -> Integers:
    """The chosen candidate of each node, `[node]`, by permute-and-flip (McKenna & Sheldon 2020).

    The paper flips the candidates' coins in random order and takes the first heads. Here all coins
    are flipped, and one of the heads is drawn uniformly. This is the same: coins do not depend on
    the order, and in a uniform order each of the heads is first equally often. The best candidate
    always shows heads.
    """
    _check(exponent, allowed)
    heads = np.zeros(allowed.shape, dtype=np.bool_)
    index = np.nonzero(allowed)
    heads[index] = exponent.coins(index, bits)
    return _Uniform(heads).draw(np.arange(len(allowed)), bits)


def exponential_mechanism(
    exponent: Exponents, allowed: Mask, bits: Bits, weights: Integers | None = None
) -> Integers:
    """The chosen candidate of each node, `[node]`, with probability ∝ weight · e^−exponent.

    Each node proposes an allowed candidate, in proportion to the public integer
    `weights[candidate]` (equal if None), and accepts it by its coin; otherwise it proposes again.
    The best candidate is always accepted, so this ends. Raises `ValueError` for a weight below 1.
    """
    _check(exponent, allowed)
    proposals = _Uniform(allowed) if weights is None else _Weighted(allowed, weights)
    return first_accepted(proposals, exponent, bits)


class Proposals(Protocol):
    """What a node may propose, and how often; public."""

    def draw(self, nodes: Integers, bits: Bits) -> Integers:
        """A candidate for each of these nodes, which may repeat."""
        ...


def first_accepted(proposals: Proposals, exponent: Exponents, bits: Bits) -> Integers:
    """The first proposal of each node whose coin of e^−exponent shows heads, `[node]`.

    That may take a million proposals, if the best candidate is proposed rarely. So a node makes
    twice as many of them at a time in each turn. Only the first that is accepted counts: how many
    follow it changes no probability.
    """
    choice = np.empty(len(exponent.numerator), dtype=np.int64)
    waiting, tries = np.arange(len(choice)), 1
    while waiting.size:
        nodes = np.repeat(waiting, tries)
        proposal = proposals.draw(nodes, bits)
        heads = exponent.coins((nodes, proposal), bits).reshape(-1, tries)
        done, first = heads.any(axis=1), heads.argmax(axis=1)
        choice[waiting[done]] = proposal.reshape(-1, tries)[done, first[done]]
        waiting = waiting[~done]
        tries = max(1, min(2 * tries, MOST_PROPOSALS // max(1, waiting.size)))
    return choice


@dataclass(frozen=True)
class Mechanism:
    """One of the two ways to draw, and its name in plans."""

    name: str
    function: Callable[[Exponents, Mask, Bits], Integers]

    def on(self, utility: str) -> str:
        """What a plan says of a query: the mechanism and what it draws by."""
        return f"{self.name} on {utility}"

    def draw(self, exponent: Exponents, allowed: Mask, bits: Bits) -> Integers:
        """One allowed candidate per node, `[node]`, to be published.

        Raises `ValueError` unless in every node some allowed candidate has exponent 0.
        """
        return self.function(exponent, allowed, bits)


PERMUTE_AND_FLIP = Mechanism("permute-and-flip", permute_and_flip)
EXPONENTIAL = Mechanism("exponential mechanism", exponential_mechanism)


def draw_uniformly(allowed: Mask, bits: Bits) -> Integers:
    """A uniform allowed candidate per node, `[node]`; it depends on no row and costs nothing."""
    return _Uniform(allowed).draw(np.arange(len(allowed)), bits)


class _Uniform:
    """The allowed candidates of each node, to draw from. Every node has one."""

    def __init__(self, mask: Mask) -> None:
        self._count = np.count_nonzero(mask, axis=1).astype(np.int64)
        self._start = self._count.cumsum() - self._count
        self._column = np.nonzero(mask)[1]

    def draw(self, nodes: Integers, bits: Bits) -> Integers:
        """A uniform allowed candidate of each of the nodes."""
        drawn: Integers = self._column[self._start[nodes] + uniform_below(self._count[nodes], bits)]
        return drawn


class _Weighted:
    """As `_Uniform`, in proportion to public integer weights."""

    def __init__(self, mask: Mask, weights: Integers) -> None:
        if (weights < 1).any():
            raise ValueError("weights must be at least 1")
        if len(mask) * int(weights.sum()) >= LIMIT:
            raise ValueError("the weights of all nodes must add up to less than 2^62")
        self._width = mask.shape[1]
        # the weights up to each candidate, of all nodes one after the other
        self._up_to = np.where(mask, weights, 0).ravel().cumsum()
        ends = self._up_to.reshape(mask.shape)[:, -1]
        self._before = np.concatenate([[0], ends[:-1]])
        self._whole = ends - self._before

    def draw(self, nodes: Integers, bits: Bits) -> Integers:
        point = self._before[nodes] + uniform_below(self._whole[nodes], bits)
        drawn: Integers = np.searchsorted(self._up_to, point, side="right") - nodes * self._width
        return drawn


def _check(exponent: Exponents, allowed: Mask) -> None:
    """Both mechanisms need a candidate with exponent 0 in every node."""
    best = allowed & (exponent.numerator == 0)
    if exponent.whole is not None:
        best &= exponent.whole == 0
    if not best.any(axis=1).all():
        raise ValueError("every node needs an allowed candidate with exponent 0")
