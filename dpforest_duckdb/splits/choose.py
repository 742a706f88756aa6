"""Choosing a split for every open node of a depth at once: utilities, then a private draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.privacy.sampler import LIMIT
from dpforest_duckdb.privacy.selection import (
    PERMUTE_AND_FLIP,
    Exponents,
    Mechanism,
    draw_uniformly,
    exponents,
)
from dpforest_duckdb.splits.candidates import Candidates
from dpforest_duckdb.splits.utilities import Utility

NO_SPLIT = -1  # instead of a candidate: the node stays a leaf


@dataclass(frozen=True)
class Choice:
    """What a draw is made from: the open nodes of a depth.

    `counts` are private, per attribute `[node, value, class]`; empty if splits are drawn without
    the rows. `allowed[node, candidate]`, `reachable[node, cell]` and `epsilon` (nano, per node) are
    public. `noisy[node, class]` is the released histogram or size, None if neither is queried.
    `weights[attribute]` and `rows` come from the request: preferences of attributes, empty if all
    are equal, and the number of all rows, 0 if it is not known.
    """

    candidates: Candidates
    counts: Sequence[Integers]
    allowed: Mask
    reachable: Mask
    noisy: Integers | None
    epsilon: int
    rows_per_unit: int
    noise: CountNoise
    bits: Bits
    depth: int = 0
    weights: tuple[float, ...] = ()
    rows: int = 0

    def of(self, nodes: Integers | NDArray[np.intp], only: int | None = None) -> Choice:
        """The same for some of the nodes. With `only`, the tables of other attributes are empty:
        copying large tables takes time.
        """
        none = nodes[:0]
        return replace(
            self,
            counts=[
                table[nodes if only is None or only == attribute else none]
                for attribute, table in enumerate(self.counts)
            ],
            allowed=self.allowed[nodes],
            reachable=self.reachable[nodes],
            noisy=None if self.noisy is None else self.noisy[nodes],
        )

    def attributes_left(self) -> Mask:
        """`[node, attribute]`: whether the attribute can still split the node. Public."""
        return self.candidates.left(self.allowed)


@dataclass(frozen=True)
class Drawn:
    """The candidate of each node, and its children's noisy class counts if they are released.

    `noise` is the standard deviation of the noise in each of these counts.
    """

    candidate: Integers
    children: Sequence[Integers] | None = None
    noise: float = 0.0

    def of(self, some: Mask) -> Drawn:
        """The same for some of the nodes."""
        children = self.children and list(compress(self.children, some))
        return replace(self, candidate=self.candidate[some], children=children)


Chooser = Callable[[Choice], Drawn]
Number = TypeVar("Number", np.int64, np.float64)


def by_utility(utility: Utility, mechanism: Mechanism) -> Chooser:
    """A draw by an integer utility; its sensitivity is scaled by the rows per privacy unit.

    A unit's rows may be in several nodes. The loss in each node is proportional to the unit's rows
    there, so all nodes of a depth together cost one ε.
    """

    def choose(choice: Choice) -> Drawn:
        exponent = exponents_of(choice, utility, choice.allowed, choice.epsilon)
        return Drawn(mechanism.draw(exponent, choice.allowed, choice.bits))

    return choose


def at_random(choice: Choice) -> Drawn:
    """A uniform attribute, then a uniform candidate of it; depends on no row, costs nothing."""
    attribute = draw_uniformly(choice.attributes_left(), choice.bits)
    return Drawn(_split_of(attribute, choice.candidates, choice.allowed, choice.bits))


def weighted_split(splits: Candidates, allowed: Mask, weights: Floats, bits: Bits) -> Integers:
    """A candidate `[node]`: an attribute in proportion to `weights[attribute]`, all above 0, then a
    uniform candidate of it.
    """
    masses = np.where(splits.left(allowed), weights, 0.0).cumsum(axis=1)
    # 52 bits, so that a product stays below the whole mass; weights are public, so this draw need
    # not be exact
    uniform = (bits.words(len(masses)) >> np.uint64(12)) / 2**52
    attribute = (masses <= (uniform * masses[:, -1])[:, None]).sum(axis=1)
    return _split_of(attribute, splits, allowed, bits)


def _split_of(attribute: Integers, splits: Candidates, allowed: Mask, bits: Bits) -> Integers:
    """A uniform allowed candidate `[node]` of each node's `attribute[node]`."""
    matching = splits.attribute[None, :] == attribute[:, None]
    return draw_uniformly(matching & allowed, bits)


def among(chooser: Chooser, of: Callable[[int], float] = math.sqrt) -> Chooser:
    """The chooser, restricted at each node to some of its remaining attributes, drawn at random.

    Of m attributes in the domain, ⌊`of`(m)⌋ are drawn, at least one; all of them are equally
    likely. The draw depends on no row.
    """

    def choose(choice: Choice) -> Drawn:
        left = choice.attributes_left()
        many = max(1, int(of(left.shape[1])))
        uniform = (choice.bits.words(left.size) >> np.uint64(11)).reshape(left.shape) / 2**53
        rank = np.where(left, uniform, np.inf).argsort(axis=1).argsort(axis=1)
        kept = left & (rank < many)
        allowed = choice.allowed & kept[:, choice.candidates.attribute]
        return chooser(replace(choice, allowed=allowed))

    return choose


def distinct_roots(chooser: Chooser) -> Chooser:
    """The chooser, with another attribute at each root: without those of the roots before it.

    The attributes left out were drawn before, so they are released, and the candidates of a later
    root are public. For choosers that release no counts of children.
    """

    def choose(choice: Choice) -> Drawn:
        if choice.depth > 0:
            return chooser(choice)
        attribute, taken, drawn = choice.candidates.attribute, list[int](), list[Integers]()
        for root in range(len(choice.allowed)):
            one = choice.of(np.array([root]))
            one.allowed[:, np.isin(attribute, taken)] = False
            candidate = chooser(one).candidate
            taken += attribute[candidate[candidate != NO_SPLIT]].tolist()
            drawn.append(candidate)
        return Drawn(np.concatenate(drawn))

    return choose


def attribute_first(attribute: Utility, point: Utility, mechanism: Mechanism) -> Chooser:
    """The attribute, then one split point of it: two draws of ε/2 each, for any number of points.

    The utility of an attribute is that of its best point. If every point's utility changes by at
    most Δ, so does their maximum; if they change in one direction, so does the maximum. So the
    sensitivity and monotonicity of `attribute` carry over.
    """

    def choose(choice: Choice) -> Drawn:
        splits = choice.candidates
        left = choice.allowed
        worth = np.where(left, values_of_each(choice, attribute.function, np.int64), -LIMIT + 1)
        groups = [splits.of(a) for a in range(len(splits.cells)) if len(splits.of(a))]
        open_ = np.stack([left[:, cuts].any(axis=1) for cuts in groups], axis=1)
        exponent = exponents(
            np.stack([worth[:, cuts].max(axis=1) for cuts in groups], axis=1),
            open_,
            choice.epsilon // 2,
            attribute.sensitivity * choice.rows_per_unit,
            monotone=attribute.monotone,
        )
        drawn = np.array([splits.attribute[cuts[0]] for cuts in groups])[
            mechanism.draw(exponent, open_, choice.bits)
        ]
        left = left & (splits.attribute[None, :] == drawn[:, None])
        exponent = exponents_of(choice, point, left, choice.epsilon // 2)
        return Drawn(mechanism.draw(exponent, left, choice.bits))

    return choose


def exponents_of(
    choice: Choice, utility: Utility, allowed: Mask, epsilon: int, only: int | None = None
) -> Exponents:
    """The private exponents of a draw among the `allowed[node, candidate]` for nano-ε `epsilon`.

    With `only`, utilities are computed for the candidates of this attribute alone.
    """
    return exponents(
        values_of_each(choice, utility.function, np.int64, only),
        allowed,
        epsilon,
        utility.sensitivity * choice.rows_per_unit,
        monotone=utility.monotone,
    )


def values_of_each(
    choice: Choice,
    function: Callable[[Integers], NDArray[Number]],
    dtype: type[Number],
    only: int | None = None,
) -> NDArray[Number]:
    """A utility of every candidate, `[node, candidate]`, attribute by attribute (or of one)."""
    values: NDArray[Number] = np.zeros(choice.allowed.shape, dtype=dtype)
    for attribute in range(len(choice.counts)) if only is None else [only]:
        listed = choice.candidates.of(attribute)
        if len(listed):
            values[:, listed] = function(choice.candidates.branch_counts(choice.counts, attribute))
    return values


def draw_best(
    utilities: Integers,
    cost: int,
    sensitivity: int,
    bits: Bits,
    mechanism: Mechanism = PERMUTE_AND_FLIP,
) -> int:
    """The place of one of the largest utilities, by a mechanism at a cost in nano-ε.

    `utilities[place]` are private and monotone: a privacy unit raises each of them by at most
    `sensitivity` and lowers none, or lowers each of them so and raises none.
    """
    allowed = np.ones((1, len(utilities)), dtype=np.bool_)
    parts = exponents(utilities[None], allowed, cost, sensitivity, monotone=True)
    return int(mechanism.draw(parts, allowed, bits)[0])
