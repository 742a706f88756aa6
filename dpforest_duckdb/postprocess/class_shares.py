"""Class shares per value of an attribute, from noisy counts: post-processing, which costs nothing.

Each share is a posterior mean. It combines the likelihood of the noisy counts, a Gaussian prior on
the log-odds around the classes' shares in all rows, and an average over models of how values
differ. In some models values are independent, with one of WIDTHS as the deviation of their
log-odds. In others the log-odds of ordered values follow a curve (`curves`), or are equal except at
one or two cuts. Models are weighted by their evidence. So if the noise exceeds the counts, the
shares are about those of all rows, and no tuning is needed. The shares of a rare class come out
higher then if values are ordered, because a curve may have any level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.postprocess.curves import curves
from dpforest_duckdb.postprocess.noisy_exponential import power
from dpforest_duckdb.postprocess.share_likelihoods import (
    EM_TURNS,
    TINY_MASS,
    NoisyTable,
    Values,
    likelihoods_of,
)

OFFSETS = np.linspace(-6, 6, 241)  # log-odds of a value minus those of all rows
STEP = 3  # every third of these is enough for shares around given ones
WIDTHS = (0.1, 0.3, 0.8, 1.6, 3.0)  # standard deviations of offsets of independent values
SEGMENT_WIDTHS = (0.8, 1.6, 3.0)  # the same, if values between cuts have equal shares
LEAST_SHARE = 1e-4  # of a class in all rows, before its log-odds; at most 1 minus it
LEAST_LIKELY = 1e-100  # floor of a likelihood relative to the largest
AT_ONCE = 2**18  # the most likelihoods that are computed together; one class may have more


def adjusted(
    table: Floats | Integers, variance: float, total: Floats, spread: float
) -> tuple[Floats, float]:
    """A table `[…, value, class]` of noisy counts, adjusted to add up to the class totals
    `[…, class]`, and the reduced variance of one of its counts.

    `variance` is that of a count, `spread` that of a total. Least squares under that condition:
    every value takes an equal part of the difference.
    """
    values = table.shape[-2]
    moved: Floats = table + ((total - table.sum(axis=-2)) / values)[..., None, :]
    return moved, variance * (1 - 1 / values) + spread / values**2


def class_shares(tables: Sequence[NoisyTable], prior: Floats) -> list[Floats]:
    """Shares `[value, class]` from the noisy counts of each table; each row sums to 1.

    `prior[class]` are the shares in all rows, which are released too.

    The last shares are kept: cuts of sums and the log-odds need those of the same counts.
    """
    kept = tuple((table.counts.tobytes(), table.variance, table.ordered) for table in tables)
    return [shares.copy() for shares in _class_shares(kept, prior.tobytes())]


@lru_cache(maxsize=4)
def _class_shares(kept: tuple[tuple[bytes, float, int], ...], shares_of_all: bytes) -> list[Floats]:
    prior = np.frombuffer(shares_of_all)
    tables = [
        NoisyTable(np.frombuffer(counts).reshape(-1, len(prior)), variance, ordered)
        for counts, variance, ordered in kept
    ]
    found = list[Floats]()
    for some in _groups(tables, len(OFFSETS)):
        found += _shares_of_group(some, prior)
    return found


def _shares_of_group(tables: Sequence[NoisyTable], prior: Floats) -> list[Floats]:
    values = Values.of(tables)
    found = np.empty(values.counts.shape)
    for labels in _blocks(values, len(OFFSETS)):
        grids = _share(_log_odds(prior[labels])[:, None] + OFFSETS)
        likelihoods = likelihoods_of(values, labels, grids[:, None]).log()
        evidence, means = _segments(likelihoods, grids, WIDTHS)  # each value is one segment
        # values without order differ as widely as all values of the attribute do
        by_width = _weights(values.totals(evidence, axis=1).reshape(-1, len(WIDTHS)))[0]
        by_width = by_width.reshape(len(grids), -1, len(WIDTHS))[:, values.table]
        shares = (means * by_width).sum(axis=2)
        for ordered in {table.ordered for table in tables if table.ordered}:
            first = values.first[[table.ordered == ordered for table in tables]]
            places = first[:, None] + np.arange(ordered)
            grid = np.broadcast_to(grids[:, None], (len(grids), len(first), len(OFFSETS)))
            figures = [each[:, places] for each in (likelihoods, evidence, means)]
            shares[:, places] = _in_order(grid, *figures)
        found[:, labels] = shares.T
    return [_completed(found[cells]) for cells in values.of_tables]


def _in_order(grids: Floats, likelihoods: Floats, evidence: Floats, means: Floats) -> Floats:
    """The shares `[class, table, value]` of values in order.

    The arguments are those of `_averaged`, with one more axis for tables. Tables are estimated
    together, as if each had classes of its own.
    """
    *alike, values, points = likelihoods.shape
    grid, likelihood, *alone = (
        each.reshape(-1, *each.shape[2:]) for each in (grids, likelihoods, evidence, means)
    )
    figures = [grid, likelihood, *alone, *curves(likelihood, OFFSETS, grid)]
    at_once = max(1, AT_ONCE // (max(1, (values - 1) * (values - 2) // 2) * points))
    found = [
        _averaged(*(each[start : start + at_once] for each in figures))
        for start in range(0, len(grid), at_once)
    ]
    return np.concatenate(found).reshape(*alike, values)


def shares_around(tables: Sequence[NoisyTable], priors: Sequence[Floats]) -> list[Floats]:
    """Shares `[cell, class]` from the noisy counts of each table, around its `prior[cell, class]`.

    As `class_shares` for values that are not in order, with one more model: either all cells of a
    table have one width, or each cell has its own. Then how likely each width is follows from all
    cells, as if one cell of each width had been seen before (empirical Bayes). So a few cells may
    differ from the prior where most do not. The log-odds are averaged, not the shares: then shares
    stay at the prior where counts hold only noise.
    """
    found, left = list[Floats](), list(priors)
    for some in _groups(tables, len(OFFSETS[::STEP])):
        values, prior = Values.of(some), np.concatenate(left[: len(some)])
        left = left[len(some) :]
        shares = _around(values, prior)
        found += [_completed(shares[cells]) for cells in values.of_tables]
    return found


def _around(values: Values, prior: Floats) -> Floats:
    shares, offsets = np.empty(values.counts.shape), OFFSETS[::STEP]
    mass = _normal_masses(WIDTHS, STEP)
    for labels in _blocks(values, len(offsets)):
        odds = _log_odds(prior.T[labels])  # `[class, cell]`
        grid = _share(odds[..., None] + offsets)
        likely = likelihoods_of(values, labels, grid).relative()
        evidence = np.maximum(likely @ mass.T, LEAST_LIKELY)  # `[class, cell, width]`
        means = (likely @ (mass * offsets).T) / evidence
        shares[:, labels] = _share(odds + _over_widths(values, evidence, means)).T
    return shares


def _over_widths(values: Values, evidence: Floats, means: Floats) -> Floats:
    """The mean offsets `[class, cell]`, averaged over widths.

    `evidence[class, cell, width]` and `means[class, cell, width]` are those of each width.
    """
    seen = evidence / evidence.max(axis=2, keepdims=True)
    weighed = evidence * _likely_widths(values, seen)
    of_all = values.totals(np.log(evidence), axis=1)  # `[class, table, width]`
    of_each = values.totals(np.log(weighed.sum(axis=2)), axis=1)  # if each cell has a width
    worth = np.concatenate([of_all, of_each[..., None]], axis=2)
    weights = np.exp(worth - worth.max(axis=2, keepdims=True))
    weights = (weights / weights.sum(axis=2, keepdims=True))[:, values.table]
    mean_of_each = (means * weighed).sum(axis=2) / weighed.sum(axis=2)
    averaged: Floats = (means * weights[..., :-1]).sum(axis=2) + weights[..., -1] * mean_of_each
    return averaged


def _likely_widths(values: Values, seen: Floats) -> Floats:
    """How likely each width is for a cell `[class, cell, width]`, the same within a table.

    After EM_TURNS turns, from the likelihoods `seen[class, cell, width]`. One more cell of each
    width, which can have no other, adds 1 to its part.
    """
    widths = seen.shape[2]
    likely = np.full(seen.shape, 1 / widths)
    for _ in range(EM_TURNS):
        parts = seen * likely
        parts /= (parts @ np.ones(widths))[..., None]  # faster than a sum along a short axis
        of_tables = (1 + values.totals(parts, axis=1)) / (values.sizes + widths)[:, None]
        likely = of_tables[:, values.table]
    return likely


def _groups(tables: Sequence[NoisyTable], points: int) -> Iterator[list[NoisyTable]]:
    """Tables that are estimated together, in their order: calls of NumPy take long for each alone.

    A group is one table, or several with at most AT_ONCE likelihoods: `points` for each count.
    """
    group, size = list[NoisyTable](), 0
    for table in tables:
        more = table.counts.size * points
        if group and size + more > AT_ONCE:
            yield group
            group, size = [], 0
        group.append(table)
        size += more
    if group:
        yield group


def _blocks(values: Values, points: int) -> list[slice]:
    """The classes whose shares are estimated: all, or the second of two.

    A block is one class, or several with at most AT_ONCE likelihoods together: `points` for each
    value and class.
    """
    cells, classes = values.counts.shape
    size = max(1, AT_ONCE // max(1, cells * points))
    starts = range(0 if classes > 2 else 1, classes, size)
    return [slice(start, min(start + size, classes)) for start in starts]


def _completed(shares: Floats) -> Floats:
    """Shares that sum to 1, from those of all classes, or of the second of two."""
    if shares.shape[1] == 2:
        shares[:, 0] = 1 - shares[:, 1]
    total: Floats = shares.sum(axis=1, keepdims=True)
    return shares / total


def _log_odds(shares: Floats) -> Floats:
    """The log-odds of shares in all rows; none is infinite."""
    share = np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)
    odds: Floats = np.log(share / (1 - share))
    return odds


def _share(odds: Floats) -> Floats:
    share: Floats = 1 / (1 + np.exp(-odds))
    return share


def _averaged(
    grid: Floats,
    likelihood: Floats,
    evidence: Floats,
    means: Floats,
    of_curves: Floats,
    curve_means: Floats,
) -> Floats:
    """The posterior mean shares `[class, value]` of values in order, averaged over the models.

    `likelihood[class, value, share]` are those of the shares `grid[class, share]`. `evidence` and
    `means` are the log evidence and the mean shares `[class, value, width]` of values that do not
    depend on each other; `of_curves` and `curve_means` are the log evidence `[class, curve]` and
    the mean shares `[class, value, curve]` of curves. Before the counts are seen, each curve is as
    likely as all models without curves together.
    """
    values, worth = likelihood.shape[1], evidence.sum(axis=1) - np.log(len(WIDTHS))
    if not of_curves.shape[1]:
        return _mean_of(means, _weights(worth)[0])
    whole = np.concatenate([np.zeros_like(likelihood[:, :1]), likelihood.cumsum(axis=1)], axis=1)
    one, two = np.arange(1, values), np.stack(np.triu_indices(values - 1, 1)) + 1
    below, below_mean = _segments(whole[:, one], grid, SEGMENT_WIDTHS)
    above, above_mean = _segments(whole[:, -1:] - whole[:, one], grid, SEGMENT_WIDTHS)
    middle, middle_mean = _segments(whole[:, two[1]] - whole[:, two[0]], grid, SEGMENT_WIDTHS)
    single = below + above - np.log(below[0].size)
    double = below[:, two[0] - 1] + middle + above[:, two[1] - 1] - np.log(max(middle[0].size, 1))
    # a curve has the prior mass of the three kinds before it together
    by_value, by_one, by_two, by_curve = _weights(worth, single, double, of_curves + np.log(3))
    # how much the mean changes at the first value of each segment; `cumsum` adds the changes up
    rise, first_mean = np.zeros((len(worth), values)), below_mean[:, two[0] - 1]
    rise[:, 0] = (by_one * below_mean).sum(axis=(1, 2)) + (by_two * first_mean).sum(axis=(1, 2))
    rise[:, one] += (by_one * (above_mean - below_mean)).sum(axis=2)
    np.add.at(rise.T, two[0], (by_two * (middle_mean - first_mean)).sum(axis=2).T)
    last_mean = above_mean[:, two[1] - 1]
    np.add.at(rise.T, two[1], (by_two * (last_mean - middle_mean)).sum(axis=2).T)
    mean: Floats = _mean_of(means, by_value) + rise.cumsum(axis=1) + _mean_of(curve_means, by_curve)
    return mean


def _mean_of(means: Floats, weights: Floats) -> Floats:
    """The mean `[class, value]` of `means[class, value, model]` with `weights[class, model]`."""
    mean: Floats = (means @ weights[..., None])[..., 0]
    return mean


def _segments(likelihood: Floats, grid: Floats, widths: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Log evidence and mean share `[…, segment, width]` of segments with one share each.

    `likelihood[…, segment, share]` are those of the shares `grid[…, share]`.
    """
    prior = _normal_masses(widths)
    top = likelihood.max(axis=-1, keepdims=True)
    likely = power(likelihood - top)
    total = likely @ prior.T + TINY_MASS
    evidence: Floats = np.log(total) + top
    mean: Floats = likely @ np.swapaxes(prior * grid[..., None, :], -1, -2) / total
    return evidence, mean


@cache
def _normal_masses(widths: tuple[float, ...], step: int = 1) -> Floats:
    """The masses `[width, offset]` of normal distributions, which sum to 1, at every `step`th of
    OFFSETS.
    """
    masses = np.exp(-((OFFSETS[::step] / np.array(widths)[:, None]) ** 2) / 2)
    normed: Floats = masses / masses.sum(axis=1, keepdims=True)
    return normed


def _weights(*worths: Floats) -> list[Floats]:
    """The weight of each model, in the shapes `[class, …]` of their log evidence; all weights of a
    class sum to 1.
    """
    worth = np.concatenate([each.reshape(len(each), -1) for each in worths], axis=1)
    masses = power(worth - worth.max(axis=1, keepdims=True))
    masses /= masses.sum(axis=1, keepdims=True)
    ends = np.cumsum([each[0].size for each in worths])
    parts = np.split(masses, ends[:-1], axis=1)
    return [part.reshape(each.shape) for part, each in zip(parts, worths, strict=True)]
