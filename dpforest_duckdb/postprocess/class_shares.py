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

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.postprocess.curves import curves
from dpforest_duckdb.postprocess.noisy_exponential import FAR, NoisyExponential, density, power

OFFSETS = np.linspace(-6, 6, 241)  # log-odds of a value minus those of all rows
STEP = 3  # every third of these is enough for shares around given ones
WIDTHS = (0.1, 0.3, 0.8, 1.6, 3.0)  # standard deviations of offsets of independent values
SEGMENT_WIDTHS = (0.8, 1.6, 3.0)  # the same, if values between cuts have equal shares
LEAST_SHARE = 1e-4  # of a class in all rows, before its log-odds; at most 1 minus it
LEAST_LIKELY = 1e-100  # floor of a likelihood relative to the largest
TINY_MASS = 1e-300  # added to masses, so that no division is by 0
AT_ONCE = 2**18  # the most likelihoods that are computed together; one class may have more
EM_TURNS = 10  # of expectation maximisation, which goes on where it was


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


@dataclass(frozen=True)
class NoisyTable:
    """Noisy `counts[value, class]`, the variance of the noise of one count, and how many of the
    first values are `ordered`. All of it is released.
    """

    counts: Floats
    variance: float
    ordered: int = 0


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
    values = _Values.of(tables)
    found = np.empty(values.counts.shape)
    for labels in _blocks(values, len(OFFSETS)):
        grids = _share(_log_odds(prior[labels])[:, None] + OFFSETS)
        likelihoods = _likelihood(values, labels, grids[:, None]).log()
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
        values, prior = _Values.of(some), np.concatenate(left[: len(some)])
        left = left[len(some) :]
        shares = _around(values, prior)
        found += [_completed(shares[cells]) for cells in values.of_tables]
    return found


def _around(values: _Values, prior: Floats) -> Floats:
    shares, offsets = np.empty(values.counts.shape), OFFSETS[::STEP]
    mass = _normal_masses(WIDTHS, STEP)
    for labels in _blocks(values, len(offsets)):
        odds = _log_odds(prior.T[labels])  # `[class, cell]`
        grid = _share(odds[..., None] + offsets)
        likely = _likelihood(values, labels, grid).relative()
        evidence = np.maximum(likely @ mass.T, LEAST_LIKELY)  # `[class, cell, width]`
        means = (likely @ (mass * offsets).T) / evidence
        shares[:, labels] = _share(odds + _over_widths(values, evidence, means)).T
    return shares


def _over_widths(values: _Values, evidence: Floats, means: Floats) -> Floats:
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


def _likely_widths(values: _Values, seen: Floats) -> Floats:
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


def _blocks(values: _Values, points: int) -> list[slice]:
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


@dataclass(frozen=True)
class _Likelihood:
    """Likelihoods `[class, value, share]` of the two cases: `factor` · e^`exponent` if a value has
    rows, and e^`without` if it has none, whatever the share.
    """

    factor: Floats
    exponent: Floats
    without: Floats

    def log(self) -> Floats:
        """The logarithm of their sum."""
        having = np.log(self.factor) + self.exponent
        # as np.logaddexp, which takes several times as long
        apart = np.abs(having - self.without)
        likelihood: Floats = np.maximum(having, self.without) + np.log1p(power(-apart))
        return likelihood

    def relative(self) -> Floats:
        """Their sum, relative to about the largest of a value."""
        top = np.maximum(self.exponent.max(axis=2, keepdims=True), self.without)
        likely: Floats = self.factor * power(self.exponent - top) + power(self.without - top)
        return likely


def _likelihood(values: _Values, labels: slice, grid: Floats) -> _Likelihood:
    """The likelihood of each share of `grid`, given a class's count and those of the others.

    With share p, (1-p)·count - p·others has mean 0; its variance is that of noise and of sampling.
    The number of rows of a value is unknown, so there are two cases. Without rows, the counts are
    noise and tell nothing about the share. With rows, the counts estimate their number with a
    normal error that is independent of the misfit above. The likelihood is averaged over that
    number, with the distribution of `_rows`. So empty values take the shares of all rows. Where
    most values have few rows, a count that is hardly above the noise is taken for noise.
    """
    _keep_freed_memory()
    found, rest, rows = values.rows, values.counts.shape[1] - 1, values.counts.sum(axis=1)
    variance, other = values.variance[:, None], 1 - grid
    count, rows = values.counts.T[labels, :, None], rows[:, None]
    others, noise = rows - count, np.sqrt(variance)
    exactness = grid**2 + other**2 / rest
    spread = variance * rest * exactness + np.maximum(rows, 1) * (grid * other)
    # the estimated number of rows and its error, which is noise / √exactness
    precision = 1 / np.sqrt(exactness)
    noisy = (grid * (count / noise) + other * (others / rest / noise)) * precision
    rate = precision * (noise / found.means[:, None])
    factor, exponent = density(noisy, rate)
    exponent -= (count - grid * rows) ** 2 / (2 * spread)
    exponent += (np.log((1 - found.empty) / found.means) + found.worth)[:, None]
    without = -(count**2 + others**2 / rest) / variance - math.log(2 * math.pi * rest)
    without = np.log(found.empty / values.variance)[:, None] + without / 2
    return _Likelihood(factor / np.sqrt(spread), exponent, without)


@cache
def _keep_freed_memory() -> None:
    """Let glibc keep up to 62 MB of freed memory for the next arrays: twice the size of an array
    that was freed once. Many classes need more than 32 MB. One of 32 MB or more has no effect.

    Before, it returns memory to the system, and to get it again for arrays of 1 MB takes half of
    the time here.
    """
    np.empty(31 * 2**20, dtype=np.int8)


@dataclass(frozen=True)
class _Values:
    """The values of several tables, one after the other.

    `counts[value, class]`, and the `variance[value]` of one of them. `table[value]` is the number
    of a value's table, and `of_tables[table]` are the values of each.
    """

    counts: Floats
    variance: Floats
    table: NDArray[np.intp]
    sizes: NDArray[np.intp]

    @staticmethod
    def of(tables: Sequence[NoisyTable]) -> _Values:
        sizes = np.array([len(table.counts) for table in tables])
        variances = np.array([table.variance for table in tables])
        counts = np.concatenate([table.counts for table in tables])
        of_table = np.repeat(np.arange(len(tables)), sizes)
        return _Values(counts, variances[of_table], of_table, sizes)

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """The number of each table's first value."""
        first: NDArray[np.intp] = self.sizes.cumsum() - self.sizes
        return first

    @property
    def of_tables(self) -> list[slice]:
        ends = zip(self.first.tolist(), self.sizes.tolist(), strict=True)
        return [slice(first, first + size) for first, size in ends]

    def totals(self, figures: Floats, axis: int = 0) -> Floats:
        """The sum over the values of each table, which are along an axis."""
        totals: Floats = np.add.reduceat(figures, self.first, axis=axis)
        return totals

    @cached_property
    def rows(self) -> _Rows:
        return _rows(self)


@dataclass(frozen=True)
class _Rows:
    """How many rows values have, learnt from the noisy counts of their table.

    `empty[value]` is the share of a table's values that have none. A value's rows have about an
    exponential distribution with its `means[value]`, and `worth[value]` is added to the log
    density.
    """

    empty: Floats
    means: Floats
    worth: Floats


def _rows(values: _Values) -> _Rows:
    """The distribution of rows, from noisy counts.

    The density of x rows is 1/m (1 + x/m)^-2, where m is the mean of the values that have any: a
    few values often hold most rows. Near the likely rows of a value it is replaced by an
    exponential density of the same value and slope there, whose mean is (x + m)/2. That is never
    above it. So of two such densities, found from no rows and from the noisy rows, a value has the
    one that explains its count better.

    The expectation maximisation starts with a single empty value in each table, so few values are
    taken for empty where noise hides whether they are.
    """
    noisy, variance = values.counts.sum(axis=1), values.counts.shape[1] * values.variance
    deviation, sizes = np.sqrt(variance), values.sizes
    errors = noisy / deviation
    without = -(noisy**2 / variance + np.log(2 * math.pi * variance)) / 2
    likely = np.stack([np.zeros(len(noisy)), np.maximum(noisy, 0)])  # `[start, value]`
    total, empty = np.maximum(values.totals(noisy), 1), 1 / (sizes + 1)  # `[table]`
    for _ in range(EM_TURNS):
        mean = (total / ((1 - empty) * sizes))[values.table]
        means = (likely + mean) / 2
        worth = np.log(means / mean) - 2 * np.log1p(likely / mean) + likely / means
        seen = NoisyExponential(errors, deviation / means)
        factor, exponent = seen.density()
        having, likely = worth + np.log(factor / means) + exponent, deviation * seen.expected()
        before = (np.log(1 - empty) - np.log(empty))[values.table]
        for_rows = having.max(axis=0) - without + before
        part = 1 / (1 + np.exp(np.minimum(np.maximum(for_rows, -FAR), FAR)))
        empty = np.maximum(values.totals(part), TINY_MASS) / (sizes + 1)
    better = having.argmax(axis=0), np.arange(len(noisy))
    return _Rows(empty[values.table], means[better], worth[better])


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
