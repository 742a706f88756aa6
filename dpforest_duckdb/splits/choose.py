"""Choosing a split in every open node of a depth at once: utilities, then a private draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.forest import THRESHOLD
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.noise import CountNoise, laplace_deviation
from dpforest_duckdb.privacy.sampler import LIMIT
from dpforest_duckdb.privacy.selection import (
    Exponents,
    Mechanism,
    draw_uniformly,
    exponential_mechanism,
    exponents,
    select,
)
from dpforest_duckdb.splits.candidates import Candidates, Counts, Mask
from dpforest_duckdb.splits.utilities import (
    Utility,
    information_gain,
    information_gain_of,
    symmetrical_uncertainty,
)

Array = NDArray[np.int64]
LATER = -1  # instead of a candidate: the node stays open and is not split at this depth


@dataclass(frozen=True)
class Choice:
    """What a draw is made from: the open nodes of a depth.

    `counts`: private, per attribute `[node, value, class]`; none where the recipe asks no split of
    the rows. `allowed[node, candidate]`, `reachable[node, cell]` and `epsilon` (nano, per node) are
    public. `noisy[node, class]` is the released histogram or size, None where none is asked.
    `released` is what earlier depths drew, for choosers that go on with it; `weights[attribute]`,
    released too, say how often an attribute is drawn at random, alike without.
    """

    candidates: Candidates
    counts: Sequence[Counts]
    allowed: Mask
    reachable: Mask
    noisy: Counts | None
    epsilon: int
    rows_per_unit: int
    noise: CountNoise
    bits: Bits
    depth: int = 0
    released: dict[tuple[int, ...], int] = field(default_factory=dict)
    weights: tuple[float, ...] = ()

    def of(self, nodes: NDArray[np.int64] | NDArray[np.intp]) -> Choice:
        """The same for some of the nodes."""
        return replace(
            self,
            counts=[table[nodes] for table in self.counts],
            allowed=self.allowed[nodes],
            reachable=self.reachable[nodes],
            noisy=None if self.noisy is None else self.noisy[nodes],
        )

    def attributes_left(self) -> Mask:
        """`[node, attribute]`: whether a node may still be split by it. Public."""
        return self.candidates.left(self.allowed)


@dataclass(frozen=True)
class Drawn:
    """The candidate of each node (or LATER), and its children's noisy class counts if released.

    `noise` is the standard deviation of the noise in each of these counts.
    """

    candidate: Array
    children: Sequence[Counts] | None = None
    noise: float = 0.0


Chooser = Callable[[Choice], Drawn]
Share = Callable[[int, int, int], tuple[int, int]]
Number = TypeVar("Number", np.int64, np.float64)


def by_utility(utility: Utility, mechanism: Mechanism) -> Chooser:
    """A draw by an integer utility; its sensitivity is scaled by the rows per privacy unit.

    A unit's rows may lie in several nodes: the loss of each is in proportion to its rows there, so
    all nodes of a depth together cost one ε.
    """

    def choose(choice: Choice) -> Drawn:
        weights = _exponents(choice, utility, choice.allowed, choice.epsilon)
        return Drawn(select(mechanism, weights, choice.allowed, choice.bits))

    return choose


def by_published(
    utility: Callable[[Counts], NDArray[np.float64]],
    sensitivity: Callable[[Counts | None], NDArray[np.float64]],
    factor: int = 2,
) -> Chooser:
    """The exponential mechanism as a paper calibrates it: P(a) ∝ exp(ε·u(a) / (factor·Δ)).

    `utility` is in floating point and `sensitivity` of the noisy counts of a node: no proof here.
    Exponents are rounded to 2^-20.
    """

    def choose(choice: Choice) -> Drawn:
        worth = _each(choice, utility, np.float64)
        best = np.where(choice.allowed, worth, -np.inf).max(axis=1, keepdims=True)
        gap = np.where(choice.allowed, best - worth, 0.0)
        rate = choice.epsilon / 1e9 / (factor * sensitivity(choice.noisy))
        parts = np.rint(np.minimum(gap * rate.reshape(-1, 1), 2.0**30) * 2**20).astype(np.int64)
        exponent = Exponents(parts, 2**20)
        return Drawn(select("exponential", exponent, choice.allowed, choice.bits))

    return choose


def at_random(choice: Choice) -> Drawn:
    """A uniform attribute, then a uniform candidate of it: rests on no row and costs nothing."""
    return Drawn(random_split(choice.candidates, choice.allowed, choice.bits))


def random_split(ways: Candidates, allowed: Mask, bits: Bits) -> Array:
    """The candidates `[node]` that `at_random` draws."""
    attribute = draw_uniformly(ways.left(allowed), bits)
    own = ways.attribute[None, :] == attribute[:, None]
    return draw_uniformly(own & allowed, bits)


def where_asked(chooser: Chooser) -> Chooser:
    """The same where the plan asks for splits; any attribute where it does not, as all are used."""
    return lambda choice: chooser(choice) if choice.counts else at_random(choice)


def among(chooser: Chooser, of: Callable[[int], float] = math.sqrt) -> Chooser:
    """The same among a random ⌊f⌋ of the attributes that a node has left, f = `of` all of them.

    Without replacement, by the attributes' weights: those whose exponential clocks of that rate
    ring first (Efraimidis & Spirakis 2006). The subset rests on no row, but for released weights.
    """

    def choose(choice: Choice) -> Drawn:
        left = choice.attributes_left()
        many = max(1, int(of(left.shape[1])))
        uniform = (choice.bits.words(left.size) >> np.uint64(11)).reshape(left.shape) / 2**53
        clock = -np.log1p(-uniform) / np.array(choice.weights or [1.0])
        rank = np.where(left, clock, np.inf).argsort(axis=1).argsort(axis=1)
        kept = left & (rank < many)
        allowed = choice.allowed & kept[:, choice.candidates.attribute]
        return chooser(replace(choice, allowed=allowed))

    return choose


def among_the_relevant(chooser: Chooser) -> Chooser:
    """The same among the ⌊√m⌋ attributes whose true counts tell most of the class (4.24).

    NOT private: the subset rests on the rows.
    """

    def choose(choice: Choice) -> Drawn:
        left = choice.attributes_left()
        told = np.stack([symmetrical_uncertainty(table) for table in choice.counts], axis=1)
        rank = np.where(left, -told, np.inf).argsort(axis=1, kind="stable").argsort(axis=1)
        kept = left & (rank < max(1, math.isqrt(left.shape[1])))
        return chooser(
            replace(choice, allowed=choice.allowed & kept[:, choice.candidates.attribute])
        )

    return choose


def equal_parts(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """ε of each of `points` point draws and of the last draw, all alike (DiffP-C4.5, DiffPRFs)."""
    return epsilon // (points + 1), epsilon // (points + 1)


def full_shares(medians: Callable[[int], int]) -> Share:
    """ε_s of each of K medians and ε_a, all alike, of a budget for K of them; `medians` of m."""

    def share(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
        return (epsilon // (medians(attributes) + 1),) * 2

    return share


def halves(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """Half of ε for the point draws together, half for the last draw (DiPriMe, rigorous).

    All of it for the last draw where no point is to be drawn.
    """
    return (epsilon // 2 // points, epsilon // 2) if points else (0, epsilon)


def by_points(
    point: Utility,
    attribute: Utility,
    share: Share = equal_parts,
    *,
    points: int | None = None,
    by_width: bool = False,
) -> Chooser:
    """A split point for each attribute that has several, then the attribute: two draws in a row.

    Both by the exponential mechanism. `share(epsilon, k, m)` gives the ε of one point draw and that
    of the last draw, at a node where k attributes want a point, in a domain of m. `points` thins
    the thresholds of an attribute to that many, equally spaced; `by_width` weighs them by the width
    of the bin below.
    """

    def choose(choice: Choice) -> Drawn:
        ways = choice.candidates
        left = choice.allowed.copy() if points is None else _thinned(choice, points)
        several = {
            a: left[:, ways.of(a)].sum(axis=1) > 1
            for a in range(len(ways.cells))
            if len(ways.of(a))
        }
        wanting = np.sum(list(several.values()), axis=0)
        drawn = np.empty(len(left), dtype=np.int64)
        for k in np.unique(wanting):
            group = np.flatnonzero(wanting == k)
            each, last = share(choice.epsilon, int(k), len(ways.cells))
            for a, want in several.items():
                nodes = group[want[group]]
                if len(nodes):
                    left[np.ix_(nodes, ways.of(a))] = _one_point(
                        choice.of(nodes), a, left[nodes], point, each, by_width
                    )[:, ways.of(a)]
            weights = _exponents(choice.of(group), attribute, left[group], last)
            drawn[group] = exponential_mechanism(weights, left[group], choice.bits)
        return Drawn(drawn)

    return choose


def attribute_first(
    attribute: Utility, point: Utility, mechanism: Mechanism, *, points: int | None = None
) -> Chooser:
    """The attribute, then one split point of it: two draws of ε/2 each, however many are left.

    An attribute is worth its best point. The best of utilities that change together, by at most Δ,
    changes with them by at most Δ, so sensitivity and monotony are those of `attribute`. `points`
    thins the thresholds as in `by_points`.
    """

    def choose(choice: Choice) -> Drawn:
        ways = choice.candidates
        left = choice.allowed if points is None else _thinned(choice, points)
        worth = np.where(left, _each(choice, attribute.function, np.int64), -LIMIT + 1)
        own = [ways.of(a) for a in range(len(ways.cells)) if len(ways.of(a))]
        open_ = np.stack([left[:, cuts].any(axis=1) for cuts in own], axis=1)
        weights = exponents(
            np.stack([worth[:, cuts].max(axis=1) for cuts in own], axis=1),
            open_,
            choice.epsilon // 2,
            attribute.sensitivity * choice.rows_per_unit,
            monotone=attribute.monotone,
        )
        drawn = np.array([ways.attribute[cuts[0]] for cuts in own])[
            select(mechanism, weights, open_, choice.bits)
        ]
        left = left & (ways.attribute[None, :] == drawn[:, None])
        weights = _exponents(choice, point, left, choice.epsilon // 2)
        return Drawn(select(mechanism, weights, left, choice.bits))

    return choose


def by_noisy_counts(*, of_all: bool) -> Chooser:
    """The largest information gain of noisy counts, which also become the children's histograms.

    Of every attribute left, n_v,c and n_v are asked, for half a share each (thesis (4.2)): a share
    is ε over all attributes (SuLQ), or over those left (PINQ).
    """

    def choose(choice: Choice) -> Drawn:
        ways, left = choice.candidates, choice.attributes_left()
        # no node of the depth has more attributes left than this public number
        sharing = left.shape[1] if of_all else int(left.sum(axis=1).max())
        epsilon = choice.epsilon // sharing // 2
        gain = np.full(choice.allowed.shape, -np.inf)
        tables = [np.zeros_like(counts) for counts in choice.counts]
        for number, counts in enumerate(choice.counts):
            nodes = np.flatnonzero(left[:, number])
            if not len(nodes):
                continue
            cells = choice.noise.laplace(counts[nodes], epsilon, choice.rows_per_unit)
            sizes = choice.noise.laplace(counts[nodes].sum(axis=2), epsilon, choice.rows_per_unit)
            gain[np.ix_(nodes, ways.of(number))] = information_gain(cells, sizes)[:, None]
            tables[number][nodes] = cells
        chosen = np.where(choice.allowed, gain, -np.inf).argmax(axis=1)
        return Drawn(
            chosen,
            children=[tables[ways.attribute[c]][node] for node, c in enumerate(chosen)],
            noise=laplace_deviation(epsilon, choice.rows_per_unit),
        )

    return choose


def by_class_means(choice: Choice) -> Drawn:
    """Rana et al. 2015: numeric points from noisy class means (4.7), then the largest gain.

    NOT private: the gain is that of true counts. The point of an attribute is the mean of its
    classes' mean bins, the sums noised with the number of bins as sensitivity.
    """
    ways, allowed = choice.candidates, choice.allowed.copy()
    for a, counts in enumerate(choice.counts):
        cuts = ways.of(a)[ways.kind[ways.of(a)] == THRESHOLD]
        if not len(cuts):
            continue
        bins = np.arange(len(cuts) + 1)
        rows = counts[:, : len(bins)]
        sums = (rows * bins[None, :, None]).sum(axis=1)
        sums = choice.noise.laplace(sums, choice.epsilon, len(bins))
        middle = (sums / np.maximum(rows.sum(axis=1), 1)).mean(axis=1)
        distance = np.where(allowed[:, cuts], abs(ways.cell[cuts][None, :] - middle[:, None]), 1e9)
        allowed[:, cuts] &= np.arange(len(cuts))[None, :] == distance.argmin(axis=1)[:, None]
    gain = _each(choice, information_gain_of, np.float64)
    return Drawn(np.where(allowed, gain, -np.inf).argmax(axis=1))


def for_all_nodes(point: Utility | None, attribute: Utility) -> Chooser:
    """One specialisation for the whole table, in every node that it concerns (DiffGen, DT-Diff).

    Candidates: an attribute not yet split by category, an interval of a numeric one. With `point`
    each new interval first draws its split point, once, by width; without, all points compete in
    one draw, weighted so that every attribute weighs the same. Utilities count the rows of the
    group that would be split: those of other groups change nothing.
    """

    def choose(choice: Choice) -> Drawn:
        ways = choice.candidates
        parts = 1
        if point is not None:
            parts = 2 + (len(ways.numeric) if choice.depth == 0 else 0)
        epsilon = choice.epsilon // parts
        allowed = np.zeros((1, len(ways)), dtype=np.bool_)
        worth = np.zeros((1, len(ways)), dtype=np.int64)
        for alone, number in _groups(choice):
            mask = alone.allowed
            if point is not None:
                mask = _remembered(alone, number, point, epsilon)
            allowed |= mask
            worth += np.where(mask, _each(alone, attribute.function, np.int64, number), 0)
        weights = exponents(
            worth,
            allowed,
            epsilon,
            attribute.sensitivity * choice.rows_per_unit,
            monotone=attribute.monotone,
        )
        sharing = np.array([max(1, allowed[0, ways.of(a)].sum()) for a in ways.attribute])
        alike = math.lcm(*sharing.tolist()) // sharing if point is None else None
        drawn = int(exponential_mechanism(weights, allowed, choice.bits, alike)[0])
        return Drawn(np.where(choice.allowed[:, drawn], drawn, LATER))

    return choose


def distinct(choice: Choice, choose: Chooser) -> Drawn:
    """Nodes one after the other, each without the attributes of those before it.

    What is left out was drawn before: released, so the candidates of a later node are public.
    """
    chosen: list[int] = []
    for node in range(len(choice.allowed)):
        own = choice.of(np.array([node]))
        taken = np.isin(choice.candidates.attribute, choice.candidates.attribute[chosen])
        own.allowed[:, taken] = False
        chosen.append(int(choose(own).candidate[0]))
    return Drawn(np.array(chosen, dtype=np.int64))


def _one_point(
    choice: Choice, attribute: int, left: Mask, point: Utility, epsilon: int, by_width: bool
) -> Mask:
    """The candidates of one attribute with all but a drawn one taken away."""
    ways = choice.candidates
    mask: Mask = left & (ways.attribute == attribute)[None, :]
    weights = _exponents(choice, point, mask, epsilon, attribute)
    widths = ways.width if by_width else None
    chosen = exponential_mechanism(weights, mask, choice.bits, widths)
    single: Mask = np.zeros(mask.shape, dtype=np.bool_)
    single[np.arange(len(mask)), chosen] = True
    return single


def _groups(choice: Choice) -> list[tuple[Choice, int]]:
    """Each group of cells that some node may still split, alone: its rows, and its attribute."""
    ways, found = choice.candidates, []
    whole = [table.sum(axis=0, keepdims=True) for table in choice.counts]
    for a, cells in enumerate(ways.slices):
        for reach in np.unique(choice.reachable[:, cells], axis=0):
            nodes = (choice.reachable[:, cells] == reach).all(axis=1)
            mask = choice.allowed[nodes].any(axis=0, keepdims=True) & (ways.attribute == a)
            if mask.any():
                counts = [*whole[:a], whole[a] * reach[None, :, None], *whole[a + 1 :]]
                found.append((replace(choice, counts=counts, allowed=mask), a))
    return found


def _remembered(alone: Choice, attribute: int, point: Utility, epsilon: int) -> Mask:
    """The candidates of a group with its one split point, drawn now if it has none yet."""
    if alone.allowed.sum() == 1:
        return alone.allowed
    key = tuple(np.flatnonzero(alone.allowed[0]).tolist())
    if key not in alone.released:
        single = _one_point(alone, attribute, alone.allowed, point, epsilon, by_width=True)
        alone.released[key] = int(single[0].argmax())
    mask = np.zeros_like(alone.allowed)
    mask[0, alone.released[key]] = True
    return mask


def _thinned(choice: Choice, points: int) -> Mask:
    """The allowed candidates, of each attribute's thresholds `points` of about equal distance.

    A node whose interval holds none of them keeps the thresholds that it has.
    """
    ways, kept = choice.candidates, choice.allowed.copy()
    for a in ways.numeric:
        cuts = ways.of(a)[ways.kind[ways.of(a)] == THRESHOLD]
        if len(cuts) > points:
            steps = np.linspace(0, len(cuts) - 1, points + 2)[1:-1]
            chosen = np.isin(np.arange(len(cuts)), steps.round().astype(np.int64))
            some: Mask = np.asarray((kept[:, cuts] & chosen).any(axis=1))
            kept[:, cuts] &= chosen | ~some[:, None]
    return kept


def _exponents(
    choice: Choice, utility: Utility, allowed: Mask, epsilon: int, only: int | None = None
) -> Exponents:
    return exponents(
        _each(choice, utility.function, np.int64, only),
        allowed,
        epsilon,
        utility.sensitivity * choice.rows_per_unit,
        monotone=utility.monotone,
    )


def _each(
    choice: Choice,
    function: Callable[[Counts], NDArray[Number]],
    dtype: type[Number],
    only: int | None = None,
) -> NDArray[Number]:
    """A utility of every candidate, `[node, candidate]`, attribute by attribute (or of one)."""
    values: NDArray[Number] = np.zeros((len(choice.counts[0]), len(choice.candidates)), dtype=dtype)
    for attribute in range(len(choice.counts)) if only is None else [only]:
        own = choice.candidates.of(attribute)
        if len(own):
            values[:, own] = function(choice.candidates.branch_counts(choice.counts, attribute))
    return values
