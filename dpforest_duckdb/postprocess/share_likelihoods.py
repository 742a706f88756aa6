"""How likely class shares are, given noisy counts: post-processing, which costs nothing.

How many rows a value has is unknown too, and may be none. Its distribution is learnt from the noisy
counts of all values of a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.postprocess.noisy_exponential import FAR, NoisyExponential, density, power

TINY_MASS = 1e-300  # added to masses, so that no division is by 0
EM_TURNS = 10  # of expectation maximisation, which goes on where it was


@dataclass(frozen=True)
class NoisyTable:
    """Noisy `counts[value, class]`, the variance of the noise of one count, and how many of the
    first values are `ordered`. All of it is released.
    """

    counts: Floats
    variance: float
    ordered: int = 0


@dataclass(frozen=True)
class Values:
    """The values of several tables, one after the other.

    `counts[value, class]`, and the `variance[value]` of one of them. `table[value]` is the number
    of a value's table, and `of_tables[table]` are the values of each.
    """

    counts: Floats
    variance: Floats
    table: NDArray[np.intp]
    sizes: NDArray[np.intp]

    @staticmethod
    def of(tables: Sequence[NoisyTable]) -> Values:
        sizes = np.array([len(table.counts) for table in tables])
        variances = np.array([table.variance for table in tables])
        counts = np.concatenate([table.counts for table in tables])
        of_table = np.repeat(np.arange(len(tables)), sizes)
        return Values(counts, variances[of_table], of_table, sizes)

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
class Likelihoods:
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


def likelihoods_of(values: Values, labels: slice, grid: Floats) -> Likelihoods:
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
    return Likelihoods(factor / np.sqrt(spread), exponent, without)


@cache
def _keep_freed_memory() -> None:
    """Let glibc keep up to 62 MB of freed memory for the next arrays: twice the size of an array
    that was freed once. Many classes need more than 32 MB. One of 32 MB or more has no effect.

    Before, it returns memory to the system, and to get it again for arrays of 1 MB takes half of
    the time here.
    """
    np.empty(31 * 2**20, dtype=np.int8)


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


def _rows(values: Values) -> _Rows:
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
