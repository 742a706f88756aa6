"""Choosers that only one published system uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.privacy.noise import laplace_deviation, noise_scale
from dpforest_duckdb.privacy.sampler import LIMIT
from dpforest_duckdb.privacy.selection import EXPONENTIAL, Exponents, exponential_mechanism
from dpforest_duckdb.splits.candidates import Candidates
from dpforest_duckdb.splits.choose import (
    NO_SPLIT,
    Choice,
    Chooser,
    Drawn,
    exponents_of,
    values_of_each,
)
from dpforest_duckdb.splits.utilities import (
    Utility,
    information_gain_of,
    published_gini,
    within_branches,
)
from dpforest_duckdb.tree import THRESHOLD

INTERVALS = 250  # equal parts of a number's range, for points drawn by width
Share = Callable[[int, int, int], tuple[int, int]]


def by_published(
    utility: Callable[[Integers], Floats],
    sensitivity: Callable[[Integers | None], Floats],
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
        return Drawn(EXPONENTIAL.draw(exponent, choice.allowed, choice.bits))

    return choose


def unless_pure(chooser: Chooser) -> Chooser:
    """The chooser, except that a node without rows, or with rows of one class, stays a leaf.

    NOT private: it reads the true rows.
    """

    def choose(choice: Choice) -> Drawn:
        several: Mask = (choice.counts[0].sum(axis=1) > 0).sum(axis=1) > 1
        return _drawn_at(several, choice, chooser)

    return choose


def among_the_relevant(chooser: Chooser) -> Chooser:
    """The chooser, restricted to the ⌊√m⌋ remaining attributes of largest weight (Liu et al. 2022).

    NOT private if the weights are those of the true rows.
    """

    def choose(choice: Choice) -> Drawn:
        left = choice.attributes_left()
        weights = np.broadcast_to(np.array(choice.weights or [1.0]), left.shape)
        rank = np.where(left, -weights, np.inf).argsort(axis=1, kind="stable").argsort(axis=1)
        kept = left & (rank < max(1, math.isqrt(left.shape[1])))
        return chooser(
            replace(choice, allowed=choice.allowed & kept[:, choice.candidates.attribute])
        )

    return choose


def at_points(chooser: Chooser, number: int) -> Chooser:
    """The chooser with `number` thresholds of each numeric attribute, at equal distances in value.

    A node that has none of them left, and no other split, stays a leaf. All of it is public.
    """

    def choose(choice: Choice) -> Drawn:
        allowed = choice.allowed & equidistant(choice.candidates, number)
        left: Mask = np.asarray(allowed.any(axis=1))
        return _drawn_at(left, replace(choice, allowed=allowed), chooser)

    return choose


def equidistant(splits: Candidates, number: int) -> Mask:
    """`[candidate]`: which candidates remain if each attribute keeps `number` thresholds.

    They are the thresholds nearest to `number` equally spaced points between the lower bound of an
    attribute and one bin above its last edge. An attribute with fewer thresholds keeps all of them.
    """
    kept = np.ones(len(splits), dtype=np.bool_)
    for a in splits.numeric:
        cuts = splits.of(a)[splits.kind[splits.of(a)] == THRESHOLD]
        if len(cuts) > number:
            value = splits.width[cuts].cumsum()
            steps = (value[-1] + splits.width[cuts[-1]]) * np.arange(1, number + 1) / (number + 1)
            nearest = abs(value[None, :] - steps[:, None]).argmin(axis=1)
            kept[cuts] = np.isin(np.arange(len(cuts)), nearest)
    return kept


def unless_few_or_pure(chooser: Chooser, least: int) -> Chooser:
    """The chooser, except that a node of less than `least` rows, or of one class, stays a leaf.

    NOT private: it depends on the true counts.
    """

    def choose(choice: Choice) -> Drawn:
        classes = choice.counts[0].sum(axis=1)  # [node, class]
        ended = (classes.sum(axis=1) < least) | ((classes > 0).sum(axis=1) < 2)
        return Drawn(np.where(ended, NO_SPLIT, chooser(choice).candidate))

    return choose


def unless_a_child_is_small(chooser: Chooser, least: Callable[[Choice], int]) -> Chooser:
    """The chooser, except that a node stays a leaf if a child would have fewer than `least` rows.

    A child without any row does not count. NOT private: it depends on the true counts.
    """

    def choose(choice: Choice) -> Drawn:
        splits, drawn = choice.candidates, chooser(choice).candidate.copy()
        for a in np.unique(splits.attribute[drawn[drawn != NO_SPLIT]]).tolist():
            nodes = np.flatnonzero((drawn != NO_SPLIT) & (splits.attribute[drawn] == a))
            of_all = splits.branch_counts([table[nodes] for table in choice.counts], a)
            place = np.searchsorted(splits.of(a), drawn[nodes])
            rows = of_all[np.arange(len(nodes)), place].sum(axis=2)  # [node, branch]
            small = ((rows < least(choice)) & (rows > 0)).any(axis=1)
            drawn[nodes[small]] = NO_SPLIT
        return Drawn(drawn)

    return choose


def by_best_points(utility: Utility) -> Chooser:
    """The best split of each attribute, by the true counts, then a draw among the attributes.

    Li & Li 2017, thesis (4.6) and (4.20). NOT private: the best points are not paid for.
    """

    def choose(choice: Choice) -> Drawn:
        splits, best = choice.candidates, np.zeros_like(choice.allowed)
        worth = values_of_each(choice, utility.function, np.int64)
        for a in range(len(splits.cells)):
            listed = splits.of(a)
            if len(listed):
                place = np.where(choice.allowed[:, listed], worth[:, listed], -LIMIT).argmax(axis=1)
                best[np.arange(len(best)), listed[place]] = True
        best &= choice.allowed
        exponent = exponents_of(choice, utility, best, choice.epsilon)
        return Drawn(exponential_mechanism(exponent, best, choice.bits))

    return choose


def where_points_are_left(chooser: Chooser, otherwise: Chooser) -> Chooser:
    """One chooser if an attribute of the node has several splits, else the other. The choice is
    public."""

    def choose(choice: Choice) -> Drawn:
        splits = choice.candidates
        counted = np.stack(
            [choice.allowed[:, splits.of(a)].sum(axis=1) for a in range(len(splits.cells))]
        )
        several: Mask = np.asarray((counted > 1).any(axis=0))
        drawn = np.empty(len(several), dtype=np.int64)
        for nodes, draw in (
            (np.flatnonzero(several), chooser),
            (np.flatnonzero(~several), otherwise),
        ):
            if len(nodes):
                drawn[nodes] = draw(choice.of(nodes)).candidate
        return Drawn(drawn)

    return choose


def equal_parts(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """ε of each of `points` point draws and of the last draw, all equal.

    DiffP-C4.5, DiffPRFs, and DPRFMaxTree as published.
    """
    return epsilon // (points + 1), epsilon // (points + 1)


def full_shares(medians: Callable[[int], int]) -> Share:
    """ε_s of each of K medians and ε_a, all equal, of a budget for K of them; `medians` of m."""

    def share(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
        return (epsilon // (medians(attributes) + 1),) * 2

    return share


def halves(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """Half of ε for the point draws together, half for the last draw.

    All of it for the last draw if there is no point to draw. Hou et al., and DiPriMe in its
    rigorous form.
    """
    return (epsilon // 2 // points, epsilon // 2) if points else (0, epsilon)


def by_points(
    point: Utility,
    attribute: Utility,
    share: Share = equal_parts,
    *,
    by_width: bool = False,
) -> Chooser:
    """A split point for each attribute that has several, then the attribute: two draws in a row.

    Both by the exponential mechanism. `share(epsilon, k, m)` gives the ε of one point draw and that
    of the last draw, at a node where k attributes want a point, in a domain of m. `by_width` weighs
    the thresholds of an attribute by the width of the bin below.
    """

    def choose(choice: Choice) -> Drawn:
        splits = choice.candidates
        left = choice.allowed.copy()
        several = {
            a: left[:, splits.of(a)].sum(axis=1) > 1
            for a in range(len(splits.cells))
            if len(splits.of(a))
        }
        wanting = np.sum(list(several.values()), axis=0)
        drawn = np.empty(len(left), dtype=np.int64)
        for k in np.unique(wanting):
            group = np.flatnonzero(wanting == k)
            each, last = share(choice.epsilon, int(k), len(splits.cells))
            for a, want in several.items():
                nodes = group[want[group]]
                if len(nodes):
                    left[np.ix_(nodes, splits.of(a))] = _one_point(
                        choice.of(nodes), a, left[nodes], point, each, by_width
                    )[:, splits.of(a)]
            exponent = exponents_of(choice.of(group), attribute, left[group], last)
            drawn[group] = exponential_mechanism(exponent, left[group], choice.bits)
        return Drawn(drawn)

    return choose


def by_noisy_counts(*, of_all: bool) -> Chooser:
    """The smallest (4.1) of the thesis by noisy counts, which become the children's histograms.

    Every remaining attribute has queries for n_v,c and n_v, with half a share each (thesis (4.2)).
    A share is ε over all attributes (SuLQ), or over the remaining ones (PINQ). The size of a node
    is the same for all its attributes, so it is left out.
    """

    def choose(choice: Choice) -> Drawn:
        splits, left = choice.candidates, choice.attributes_left()
        # a public number: no node of the depth has more remaining attributes
        sharing = left.shape[1] if of_all else int(left.sum(axis=1).max())
        epsilon = choice.epsilon // sharing // 2
        entropy = np.full(choice.allowed.shape, np.inf)
        tables = [np.zeros_like(counts) for counts in choice.counts]
        for number, counts in enumerate(choice.counts):
            nodes = np.flatnonzero(left[:, number])
            if not len(nodes):
                continue
            cells = choice.noise.laplace(counts[nodes], epsilon, choice.rows_per_unit)
            sizes = choice.noise.laplace(counts[nodes].sum(axis=2), epsilon, choice.rows_per_unit)
            entropy[np.ix_(nodes, splits.of(number))] = within_branches(cells, sizes)[:, None]
            tables[number][nodes] = cells
        chosen = np.where(choice.allowed, entropy, np.inf).argmin(axis=1)
        return Drawn(
            chosen,
            children=[tables[splits.attribute[c]][node] for node, c in enumerate(chosen)],
            noise=laplace_deviation(epsilon, choice.rows_per_unit),
        )

    return choose


def by_private_histograms(choice: Choice) -> Drawn:
    """The split of least Gini in noisy histograms by class of every attribute (Vos et al. 2023).

    The histogram of each attribute has its part of ε; negative counts are set to 0. A split with an
    empty side by these counts is left out, and a node without another split stays a leaf.
    """
    splits, worth = choice.candidates, np.full(choice.allowed.shape, -np.inf)
    each, k = choice.epsilon // len(splits.cells), choice.rows_per_unit
    tables = [np.maximum(choice.noise.laplace(table, each, k), 0) for table in choice.counts]
    for a in range(len(splits.cells)):
        sides = splits.branch_counts(tables, a)
        held = (sides.sum(axis=3) > 0).all(axis=2)
        worth[:, splits.of(a)] = np.where(held, published_gini(sides), -np.inf)
    worth = np.where(choice.allowed, worth, -np.inf)
    return Drawn(np.where(np.isinf(worth.max(axis=1)), NO_SPLIT, worth.argmax(axis=1)))


def by_class_means(choice: Choice) -> Drawn:
    """Rana et al. 2015: the attribute of largest gain, then its point from noisy means (4.7).

    NOT private: the gain is that of true counts. So a node has one noisy query, of the classes'
    mean bins, and only if a threshold has the largest gain.
    """
    gain = values_of_each(choice, information_gain_of, np.float64)
    drawn = np.where(choice.allowed, gain, -np.inf).argmax(axis=1)
    splits = choice.candidates
    for a in splits.numeric:
        nodes = np.flatnonzero((splits.attribute[drawn] == a) & (splits.kind[drawn] == THRESHOLD))
        if len(nodes):
            drawn[nodes] = _nearest_to_class_means(choice.of(nodes), a)
    return Drawn(drawn)


def _nearest_to_class_means(choice: Choice, attribute: int) -> Integers:
    """The allowed threshold `[node]` that is nearest to the mean of the classes' mean bins.

    The sums have noise, with the number of bins as sensitivity per row. A class without rows in the
    node has no mean and is left out.
    """
    splits = choice.candidates
    cuts = splits.of(attribute)[splits.kind[splits.of(attribute)] == THRESHOLD]
    bins = np.arange(len(cuts) + 1)
    rows = choice.counts[attribute][:, : len(bins)]
    sums = (rows * bins[None, :, None]).sum(axis=1)
    sums = choice.noise.laplace(sums, choice.epsilon, len(bins) * choice.rows_per_unit)
    sizes = rows.sum(axis=1)  # [node, class]
    held = np.maximum((sizes > 0).sum(axis=1), 1)
    middle = np.where(sizes > 0, sums / np.maximum(sizes, 1), 0).sum(axis=1) / held
    edges = splits.cell[cuts] + 0.5  # a cut lies between the middles of two bins
    distance = abs(edges[None, :] - middle[:, None])
    nearest: Integers = cuts[np.where(choice.allowed[:, cuts], distance, np.inf).argmin(axis=1)]
    return nearest


def _drawn_at(some: Mask, choice: Choice, chooser: Chooser) -> Drawn:
    """What the chooser draws at some of the nodes; the others stay leaves."""
    drawn, nodes = np.full(len(some), NO_SPLIT, dtype=np.int64), np.flatnonzero(some)
    if len(nodes):
        drawn[nodes] = chooser(choice.of(nodes)).candidate
    return Drawn(drawn)


def _one_point(
    choice: Choice, attribute: int, left: Mask, point: Utility, epsilon: int, by_width: bool
) -> Mask:
    """The candidates, with one drawn candidate of an attribute instead of all."""
    splits = choice.candidates
    mask: Mask = left & (splits.attribute == attribute)[None, :]
    exponent = exponents_of(choice, point, mask, epsilon, attribute)
    widths = splits.width if by_width else None
    chosen = exponential_mechanism(exponent, mask, choice.bits, widths)
    single: Mask = np.zeros(mask.shape, dtype=np.bool_)
    single[np.arange(len(mask)), chosen] = True
    return single
