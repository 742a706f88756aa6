"""Choosers that several published systems share, and none of ours.

That of a single system is beside its recipe, in `recipes/published/`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.privacy.noise import laplace_deviation, noise_scale
from dpforest_duckdb.privacy.selection import EXPONENTIAL, Exponents, exponential_mechanism
from dpforest_duckdb.splits.choose import (
    NO_SPLIT,
    Choice,
    Chooser,
    Drawn,
    exponents_of,
    values_of_each,
)
from dpforest_duckdb.splits.utilities import Utility, within_branches

INTERVALS = 250  # equal parts of a number's range, for points drawn by width
Share = Callable[[int, int, int], tuple[int, int]]


def by_published(
    utility: Callable[[Integers], Floats],
    sensitivity: Callable[[Integers | None], Floats],
    factor: int = 2,
) -> Chooser:
    """The exponential mechanism as a paper calibrates it: P(a) ∝ exp(ε·u(a) / (k·factor·Δ)).

    `utility` is in floating point and `sensitivity` of the noisy counts of a node: no proof here.
    k is the rows per privacy unit (1 in the papers).
    """

    def choose(choice: Choice) -> Drawn:
        worth = values_of_each(choice, utility, np.float64)
        best = np.where(choice.allowed, worth, -np.inf).max(axis=1, keepdims=True)
        gap = np.where(choice.allowed, best - worth, 0.0)
        scale = float(noise_scale(choice.epsilon, choice.rows_per_unit))
        rate = 1 / scale / (factor * sensitivity(choice.noisy))
        exponent = Exponents.rounded(gap * rate.reshape(-1, 1))
        return Drawn(EXPONENTIAL.draw(exponent, choice.allowed, choice.bits))

    return choose


def unless_pure(chooser: Chooser) -> Chooser:
    """The chooser, except that a node without rows, or with rows of one class, stays a leaf.

    NOT private: it reads the true rows.
    """

    def choose(choice: Choice) -> Drawn:
        several: Mask = (choice.counts[0].sum(axis=1) > 0).sum(axis=1) > 1
        return drawn_at(several, choice, chooser)

    return choose


def unless_few_or_pure(chooser: Chooser, least: int) -> Chooser:
    """The chooser, except that a node of less than `least` rows, or of one class, stays a leaf.

    NOT private: it depends on the true counts.
    """

    def choose(choice: Choice) -> Drawn:
        classes = choice.counts[0].sum(axis=1)  # [node, class]
        ended = (classes.sum(axis=1) < least) | ((classes > 0).sum(axis=1) < 2)
        return Drawn(np.where(ended, NO_SPLIT, chooser(choice).candidate))

    return choose


def equal_parts(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """ε of each of `points` point draws and of the last draw, all equal.

    DiffP-C4.5, DiffPRFs, and DPRFMaxTree as published.
    """
    return epsilon // (points + 1), epsilon // (points + 1)


def full_shares(medians: Callable[[int], int]) -> Share:
    """Equal ε for each median and for the last draw: ε / (K + 1), with K = `medians(m)`.

    It stays the same if fewer than K medians are drawn.
    """

    def share(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
        return (epsilon // (medians(attributes) + 1),) * 2

    return share


def halves(epsilon: int, points: int, attributes: int) -> tuple[int, int]:
    """Half of ε for the point draws together, half for the last draw.

    If there is no point to draw, the last draw has all of it. Hou et al., and DiPriMe in its
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

    Both use the exponential mechanism. `share(epsilon, k, m)` gives the ε of one point draw and
    that of the last draw, at a node where k attributes need a point, in a domain of m. `by_width`
    weighs the thresholds of an attribute by the width of the bin below.
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
                        choice.of(nodes, a), a, left[nodes], point, each, by_width
                    )[:, splits.of(a)]
            exponent = exponents_of(choice.of(group), attribute, left[group], last)
            drawn[group] = exponential_mechanism(exponent, left[group], choice.bits)
        return Drawn(drawn)

    return choose


def by_noisy_counts(*, of_all: bool) -> Chooser:
    """The split whose entropy by noisy counts (thesis, equation 4.1) is smallest.

    The counts become the histograms of its children.

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


def drawn_at(some: Mask, choice: Choice, chooser: Chooser) -> Drawn:
    """What the chooser draws where `some[node]` is true; the other nodes stay leaves."""
    drawn, nodes = np.full(len(some), NO_SPLIT, dtype=np.int64), np.flatnonzero(some)
    if len(nodes):
        drawn[nodes] = chooser(choice.of(nodes)).candidate
    return Drawn(drawn)


def _one_point(
    choice: Choice, attribute: int, left: Mask, point: Utility, epsilon: int, by_width: bool
) -> Mask:
    """The candidates `left[node, candidate]`, with one drawn of an attribute instead of all.

    `epsilon` is the nano-ε of the draw. `by_width` is as of `by_points`. Counts of other attributes
    are not used.
    """
    splits = choice.candidates
    mask: Mask = left & (splits.attribute == attribute)[None, :]
    exponent = exponents_of(choice, point, mask, epsilon, attribute)
    widths = splits.width if by_width else None
    chosen = exponential_mechanism(exponent, mask, choice.bits, widths)
    single: Mask = np.zeros(mask.shape, dtype=np.bool_)
    single[np.arange(len(mask)), chosen] = True
    return single
