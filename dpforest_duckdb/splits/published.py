"""Choosers that one published system each uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.privacy.noise import laplace_deviation, noise_scale
from dpforest_duckdb.privacy.selection import (
    Exponents,
    exponential_mechanism,
    exponents,
    select,
)
from dpforest_duckdb.splits.choose import (
    LATER,
    Choice,
    Chooser,
    Drawn,
    exponents_of,
    thinned,
    values_of_each,
)
from dpforest_duckdb.splits.utilities import (
    Utility,
    information_gain,
    information_gain_of,
    symmetrical_uncertainty,
)
from dpforest_duckdb.tree import THRESHOLD

Share = Callable[[int, int, int], tuple[int, int]]


def by_published(
    utility: Callable[[Integers], NDArray[np.float64]],
    sensitivity: Callable[[Integers | None], NDArray[np.float64]],
    factor: int = 2,
) -> Chooser:
    """The exponential mechanism as a paper calibrates it: P(a) ∝ exp(ε·u(a) / (k·factor·Δ)).

    `utility` is in floating point and `sensitivity` of the noisy counts of a node: no proof here.
    k is the rows per privacy unit (1 in the papers). Exponents are rounded to 2^-20.
    """

    def choose(choice: Choice) -> Drawn:
        worth = values_of_each(choice, utility, np.float64)
        best = np.where(choice.allowed, worth, -np.inf).max(axis=1, keepdims=True)
        gap = np.where(choice.allowed, best - worth, 0.0)
        scale = float(noise_scale(choice.epsilon, choice.rows_per_unit))
        rate = 1 / scale / (factor * sensitivity(choice.noisy))
        parts = np.rint(np.minimum(gap * rate.reshape(-1, 1), 2.0**30) * 2**20).astype(np.int64)
        exponent = Exponents(parts, 2**20)
        return Drawn(select("exponential", exponent, choice.allowed, choice.bits))

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
        left = choice.allowed.copy() if points is None else thinned(choice, points)
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
            weights = exponents_of(choice.of(group), attribute, left[group], last)
            drawn[group] = exponential_mechanism(weights, left[group], choice.bits)
        return Drawn(drawn)

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
    classes' mean bins, the sums noised with the number of bins per row as sensitivity.
    """
    ways, allowed = choice.candidates, choice.allowed.copy()
    for a, counts in enumerate(choice.counts):
        cuts = ways.of(a)[ways.kind[ways.of(a)] == THRESHOLD]
        if not len(cuts):
            continue
        bins = np.arange(len(cuts) + 1)
        rows = counts[:, : len(bins)]
        sums = (rows * bins[None, :, None]).sum(axis=1)
        sums = choice.noise.laplace(sums, choice.epsilon, len(bins) * choice.rows_per_unit)
        middle = (sums / np.maximum(rows.sum(axis=1), 1)).mean(axis=1)
        distance = np.where(allowed[:, cuts], abs(ways.cell[cuts][None, :] - middle[:, None]), 1e9)
        allowed[:, cuts] &= np.arange(len(cuts))[None, :] == distance.argmin(axis=1)[:, None]
    gain = values_of_each(choice, information_gain_of, np.float64)
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
            worth += np.where(mask, values_of_each(alone, attribute.function, np.int64, number), 0)
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


def _one_point(
    choice: Choice, attribute: int, left: Mask, point: Utility, epsilon: int, by_width: bool
) -> Mask:
    """The candidates of one attribute with all but a drawn one taken away."""
    ways = choice.candidates
    mask: Mask = left & (ways.attribute == attribute)[None, :]
    weights = exponents_of(choice, point, mask, epsilon, attribute)
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
