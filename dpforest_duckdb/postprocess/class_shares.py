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
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.postprocess.curves import curves
from dpforest_duckdb.postprocess.noisy_exponential import NoisyExponential

OFFSETS = np.linspace(-6, 6, 241)  # log-odds of a value minus those of all rows
WIDTHS = (0.1, 0.3, 0.8, 1.6, 3.0)  # standard deviations of offsets of independent values
STEPS = (0.8, 1.6, 3.0)  # the same, if values between cuts are equal
LEAST_LIKELY = 1e-100  # floor of a likelihood relative to the largest
TINY = 1e-300  # added to masses, so that no division is by 0
FAR = 700.0  # log-odds beyond which a case is as good as certain; exp stays finite
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


def class_shares(table: Floats, prior: Floats, variance: float, ordered: int = 0) -> Floats:
    """Shares `[value, class]` from noisy counts `table[value, class]`; each row sums to 1.

    `prior[class]` are the shares in all rows, `variance` is that of the noise of one count; the
    first `ordered` values are in order. All of it is released.

    The last shares are kept: cuts of sums and the log-odds need those of the same counts.
    """
    return _class_shares(table.tobytes(), prior.tobytes(), variance, ordered).copy()


@lru_cache(maxsize=64)
def _class_shares(counts: bytes, shares_of_all: bytes, variance: float, ordered: int) -> Floats:
    prior = np.frombuffer(shares_of_all)
    table = np.frombuffer(counts).reshape(-1, len(prior))
    shares = np.empty(table.shape)
    for labels in _blocks(table, len(OFFSETS)):
        share = np.clip(prior[labels], 1e-4, 1 - 1e-4)
        grids = _share(np.log(share / (1 - share))[:, None] + OFFSETS)
        likelihoods = _log_likelihood(table, labels, grids[:, None], variance)
        in_order = likelihoods[:, :ordered]
        evidence, means = curves(in_order, OFFSETS, grids)
        for number, grid in enumerate(grids):
            alone = _segments(likelihoods[number], grid, WIDTHS)  # each value is one segment
            along = evidence[number], means[number]
            column = shares[:, labels.start + number]
            column[:ordered] = _averaged(in_order[number], grid, alone, along)
            # values without order differ as widely as all values of the attribute do
            column[ordered:] = alone[1][ordered:] @ _weights(alone[0].sum(axis=0))[0]
    return _completed(shares)


def shares_around(table: Floats, prior: Floats, variance: float) -> Floats:
    """Shares `[cell, class]` from noisy counts `table[cell, class]`, around `prior[cell, class]`.

    As `class_shares` for values that are not in order, with one more model: either all cells have
    one width, or each cell has its own. Then how likely each width is follows from all cells, as if
    one cell of each width had been seen before (empirical Bayes). So a few cells may differ from
    the prior where most do not. The log-odds are averaged, not the shares: then shares stay at the
    prior where counts hold only noise.
    """
    shares, offsets = np.empty(table.shape), OFFSETS[::3]
    mass = np.exp(-((offsets / np.array(WIDTHS)[:, None]) ** 2) / 2)
    mass /= mass.sum(axis=1, keepdims=True)
    for labels in _blocks(table, len(offsets)):
        share = np.clip(prior.T[labels], 1e-4, 1 - 1e-4)
        odds = np.log(share / (1 - share))  # `[class, cell]`
        likelihood = _log_likelihood(table, labels, _share(odds[..., None] + offsets), variance)
        likely = np.exp(likelihood - likelihood.max(axis=2, keepdims=True))
        evidence = np.maximum(likely @ mass.T, LEAST_LIKELY)  # `[class, cell, width]`
        means = (likely * offsets) @ mass.T / evidence
        shares[:, labels] = _share(odds + _over_widths(evidence, means)).T
    return _completed(shares)


def _over_widths(evidence: Floats, means: Floats) -> Floats:
    """The mean offsets `[class, cell]`, averaged over widths.

    `evidence[class, cell, width]` and `means[class, cell, width]` are those of each width.
    """
    classes, _, widths = evidence.shape
    before = np.tile(np.eye(widths), (classes, 1, 1))
    seen = np.concatenate([before, evidence / evidence.max(axis=2, keepdims=True)], axis=1)
    own = evidence * most_likely(seen, np.full((classes, widths), 1 / widths))[:, None]
    of_all, of_own = np.log(evidence).sum(axis=1), np.log(own.sum(axis=2)).sum(axis=1)
    worth = np.column_stack([of_all, of_own])
    weights = np.exp(worth - worth.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    by_own = (means * own).sum(axis=2) / own.sum(axis=2)
    averaged: Floats = (means @ weights[:, :-1, None])[..., 0] + weights[:, -1:] * by_own
    return averaged


def _blocks(table: Floats, points: int) -> list[slice]:
    """The classes whose shares are estimated: all, or the second of two.

    A block is one class, or several with at most AT_ONCE likelihoods together: `points` for each
    value and class.
    """
    classes = table.shape[1]
    size = max(1, AT_ONCE // max(1, len(table) * points))
    starts = range(0 if classes > 2 else 1, classes, size)
    return [slice(start, min(start + size, classes)) for start in starts]


def _completed(shares: Floats) -> Floats:
    """Shares that sum to 1, from those of all classes, or of the second of two."""
    if shares.shape[1] == 2:
        shares[:, 0] = 1 - shares[:, 1]
    total: Floats = shares.sum(axis=1, keepdims=True)
    return shares / total


def _share(odds: Floats) -> Floats:
    share: Floats = 1 / (1 + np.exp(-odds))
    return share


def _log_likelihood(table: Floats, labels: slice, grid: Floats, variance: float) -> Floats:
    """`[class, value, share]`: the log-likelihood of each share of `grid`, given a class's count
    and those of the others.

    With share p, (1-p)·count - p·others has mean 0; its variance is that of noise and of sampling.
    The number of rows of a value is unknown, so there are two cases. Without rows, the counts are
    noise and tell nothing about the share. With rows, the counts estimate their number with a
    normal error that is independent of the misfit above. The likelihood is averaged over that
    number, with the distribution of `_rows`. So empty values take the shares of all rows. Where
    most values have few rows, a count that is hardly above the noise is taken for noise.
    """
    _keep_freed_memory()
    rest, rows = table.shape[1] - 1, table.sum(axis=1)
    count = table.T[labels, :, None]
    others = rows[:, None] - count
    noise = variance * ((1 - grid) ** 2 + rest * grid**2)
    spread = noise + np.maximum(rows, 1)[:, None] * grid * (1 - grid)
    misfit = ((1 - grid) * count - grid * others) ** 2 / spread
    exactness = grid**2 + (1 - grid) ** 2 / rest
    estimate = (grid * count + (1 - grid) * others / rest) / exactness
    found = _rows(rows, table.shape[1] * variance)
    deviation = np.sqrt(variance / exactness)
    having = NoisyExponential(estimate, deviation, found.means[:, None]).log_density()
    with_rows = (np.log(1 - found.empty) + found.worth)[:, None] + having
    with_rows = with_rows - (misfit + np.log(spread)) / 2
    without_rows = -(count**2 + others**2 / rest) / variance - math.log(2 * math.pi * rest)
    without_rows = math.log(found.empty) + without_rows / 2 - math.log(variance)
    likelihood: Floats = np.logaddexp(with_rows, without_rows)
    return likelihood


@cache
def _keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next arrays, which it does once it has freed 16 MB
    together.

    Before, it returns memory to the system, and to get it again for arrays of 1 MB takes half of
    the time here.
    """
    np.empty(2**24, dtype=np.int8)


@dataclass(frozen=True)
class _Rows:
    """How many rows values have, learnt from their noisy counts.

    `empty` is the share of values that have none. A value's rows have about an exponential
    distribution with its `means[value]`, and `worth[value]` is added to the log density.
    """

    empty: float
    means: Floats
    worth: Floats


def _rows(noisy: Floats, variance: float) -> _Rows:
    """The distribution of rows, from `noisy[value]` with noise of that variance.

    The density of x rows is 1/m (1 + x/m)^-2, where m is the mean of the values that have any: a
    few values often hold most rows. Near the likely rows of a value it is replaced by an
    exponential density of the same value and slope there, whose mean is (x + m)/2. That is never
    above it. So of two such densities, found from no rows and from the noisy rows, a value has the
    one that explains its count better.

    The expectation maximisation starts with a single empty value, so few values are taken for empty
    where noise hides whether they are.
    """
    values, deviation, empty = len(noisy), math.sqrt(variance), 1 / (len(noisy) + 1)
    without = -(noisy**2 / variance + math.log(2 * math.pi * variance)) / 2
    likely = np.stack([np.zeros(values), np.maximum(noisy, 0)])  # `[start, value]`
    for _ in range(EM_TURNS):
        mean = max(float(noisy.sum()), 1.0) / ((1 - empty) * values)
        means = (likely + mean) / 2
        worth = np.log(means / mean) - 2 * np.log1p(likely / mean) + likely / means
        seen = NoisyExponential(noisy, deviation, means)
        having, likely = worth + seen.log_density(), seen.expected()
        for_rows = having.max(axis=0) - without + math.log(1 - empty) - math.log(empty)
        part = 1 / (1 + np.exp(np.clip(for_rows, -FAR, FAR)))
        empty = max(float(part.sum()), TINY) / (values + 1)
    better = having.argmax(axis=0), np.arange(values)
    return _Rows(empty, means[better], worth[better])


def _averaged(
    likelihood: Floats, grid: Floats, alone: tuple[Floats, Floats], along: tuple[Floats, Floats]
) -> Floats:
    """The posterior mean share of each value in order, averaged over the models.

    `alone` are the log evidence and the mean shares `[value, width]` of values that do not depend
    on each other, which may be followed by those of values without order. `along` are the log
    evidence `[curve]` and the mean shares `[value, curve]` of curves. Before the counts are seen,
    each curve is as likely as all models without curves together.
    """
    values = len(likelihood)
    evidence, means = alone[0][:values], alone[1][:values]
    worth = evidence.sum(axis=0) - np.log(len(WIDTHS))
    if not len(along[0]):
        only: Floats = means @ _weights(worth)[0]
        return only
    whole = np.concatenate([np.zeros((1, len(grid))), likelihood.cumsum(axis=0)])
    one, two = np.arange(1, values), np.stack(np.triu_indices(values - 1, 1)) + 1
    below, below_mean = _segments(whole[one], grid, STEPS)
    above, above_mean = _segments(whole[-1] - whole[one], grid, STEPS)
    middle, middle_mean = _segments(whole[two[1]] - whole[two[0]], grid, STEPS)
    single = below + above - np.log(below.size)
    double = below[two[0] - 1] + middle + above[two[1] - 1] - np.log(max(middle.size, 1))
    # a curve has the prior mass of the three kinds before it together
    by_value, by_one, by_two, by_curve = _weights(worth, single, double, along[0] + np.log(3))
    # how much the mean changes at the first value of each segment; `cumsum` adds the changes up
    rise = np.zeros(values + 1)
    rise[0] = (by_one * below_mean).sum() + (by_two * below_mean[two[0] - 1]).sum()
    np.add.at(rise, one, (by_one * (above_mean - below_mean)).sum(axis=1))
    np.add.at(rise, two[0], (by_two * (middle_mean - below_mean[two[0] - 1])).sum(axis=1))
    np.add.at(rise, two[1], (by_two * (above_mean[two[1] - 1] - middle_mean)).sum(axis=1))
    mean: Floats = means @ by_value + rise.cumsum()[:values] + along[1] @ by_curve
    return mean


def _segments(likelihood: Floats, grid: Floats, widths: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Log evidence and mean share `[segment, width]` of segments with one share each."""
    prior = np.exp(-((OFFSETS / np.array(widths)[:, None]) ** 2) / 2)
    prior /= prior.sum(axis=1, keepdims=True)
    top = likelihood.max(axis=1, keepdims=True)
    likely = np.exp(likelihood - top)
    total = likely @ prior.T + TINY
    evidence: Floats = np.log(total) + top
    mean: Floats = likely @ (prior * grid).T / total
    return evidence, mean


def _weights(*worths: Floats) -> list[Floats]:
    """The weight of each model, in the shapes of their log evidence; all weights sum to 1."""
    top = max(worth.max(initial=-np.inf) for worth in worths)
    masses = [np.exp(worth - top) for worth in worths]
    total = sum(float(mass.sum()) for mass in masses)
    return [mass / total for mass in masses]


def most_likely(likelihoods: Floats, weights: Floats) -> Floats:
    """The shares `[…, width]` after EM_TURNS turns, from `likelihoods[…, case, width]`."""
    for _ in range(EM_TURNS):
        parts = likelihoods * weights[..., None, :]
        weights = (parts / parts.sum(axis=-1, keepdims=True)).mean(axis=-2)
    return weights
