"""Log-odds that add up, fitted to released class shares: post-processing, which costs nothing.

The sum of log-odds that naive Bayes gives assumes that attributes are independent within a class.
The class shares of every value are also all that a logistic regression on those values would learn
from the rows, if it knew which values occur together: they are its sufficient statistics.
`iterative_proportional_fit` takes the attributes to be independent over all rows instead, draws
made-up rows from their released frequencies, and fits the regression to them (Deming & Stephan
1940; Darroch & Ratcliff 1972). Where attributes are independent, as in designed tables, this is the
maximum-likelihood model; where they repeat each other, naive Bayes is as good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats

ROWS = 4000  # made-up rows; more change less than the noise of counts does
SWEEPS = 3  # over all attributes; more fit the noise of the released shares
MARGINS = 8  # sweeps over the two margins of a table
LEAST = 1e-6  # of a share, before its logarithm
_MIDDLES = (np.arange(ROWS) + 0.5) / ROWS


@dataclass(frozen=True)
class Odds:
    """Log-odds of a row's classes: `start[class]` plus `added[attribute][value, class]`."""

    start: Floats
    added: list[Floats]


def naive_bayes(prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]) -> Odds:
    """Naive Bayes from P(class), P(class | value) `[value, class]` and P(value), per attribute.

    For two classes the sum is shifted and scaled (`calibration`).
    """
    added = [
        np.log(np.maximum(share, LEAST)) - np.log(np.maximum(weight @ share / weight.sum(), LEAST))
        for share, weight in zip(shares, weights, strict=True)
    ]
    if len(prior) > 2:
        return Odds(np.log(prior), added)
    sums = [odds[:, 1] - odds[:, 0] for odds in added]
    start, slope = calibration(prior, sums, shares, weights)
    halves = np.array([-0.5, 0.5])
    return Odds(start * halves, [slope * odds[:, None] * halves for odds in sums])


def calibration(
    prior: Floats, added: Sequence[Floats], shares: Sequence[Floats], weights: Sequence[Floats]
) -> tuple[float, float]:
    """The shift and the scale of a sum of two classes' log-odds that fit its means and variances
    within the classes.

    `added[value]` are what an attribute adds, the others as for `naive_bayes`. If the sum were
    Gaussian, with means m1 and m0 and variance v, the log-odds would be those of all rows +
    (m1 - m0)/v · (sum - middle).
    """
    mean, variance = np.zeros(2), np.zeros(2)
    for odds, share, weight in zip(added, shares, weights, strict=True):
        within = weight[:, None] * share
        within /= within.sum(axis=0)
        center = odds @ within
        mean += center
        variance += ((odds[:, None] - center) ** 2 * within).sum(axis=0)
    apart = mean[1] - mean[0]
    slope = min(1.0, float(apart / (variance @ prior + 1e-9))) if apart > 0 else 1.0
    return float(np.log(prior[1] / prior[0]) - slope * mean.mean()), slope


def iterative_proportional_fit(
    prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]
) -> Odds:
    """The additive log-odds whose expected class shares per value are the released ones.

    Arguments as for `naive_bayes`. The made-up rows are the same in every call, and each value has
    as many of them as its frequency says. Every value gets one more row, with its released shares,
    so that none is without rows. Log-odds are against the first class.
    """
    made, rows = _made_up_rows(weights)
    codes = [each.code for each in made]
    wanted = [np.maximum(share, LEAST).T for share in shares]
    added = [target / prior[:, None] for target in wanted]  # factors of the odds, until the end
    odds = np.log(prior)[:, None] + sum(
        np.log(part).take(code, axis=1) for part, code in zip(added, codes, strict=True)
    )
    held = np.exp(odds - odds.max(axis=0))  # `[class, row]`: rows of each class
    held *= rows / held.sum(axis=0)
    for _ in range(SWEEPS):
        for part, target, share, each in zip(added, wanted, shares, made, strict=True):
            factor = target / np.maximum(each.sums(held, len(share)) + share.T, LEAST)
            part *= factor
            # all are inside: no check, which takes time
            held *= factor.take(each.code, axis=1, mode="clip")
            held *= rows / held.sum(axis=0)
    return Odds(_against_first(np.log(prior)), [_against_first(np.log(part).T) for part in added])


@dataclass(frozen=True)
class _Column:
    """The values `code[row]` of an attribute in made-up rows, and the rows in their order."""

    code: NDArray[np.intp]
    in_order: NDArray[np.intp]

    @cached_property
    def _runs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The values that occur, and the first place of each in the order."""
        times = np.bincount(self.code)
        values = times.nonzero()[0]
        return values, (times.cumsum() - times)[values]

    def sums(self, figures: Floats, values: int) -> Floats:
        """The sums `[class, value]` of `figures[class, row]`."""
        found, (occur, first) = np.zeros((len(figures), values)), self._runs
        found[:, occur] = np.add.reduceat(figures.take(self.in_order, axis=1), first, axis=1)
        return found


def _made_up_rows(weights: Sequence[Floats]) -> tuple[list[_Column], Floats]:
    """Rows that differ, by attribute, and how often each occurs.

    All rows, once each, if there are more combinations of values than rows.
    """
    codes = [made_up(number, weight) for number, weight in enumerate(weights)]
    values = [int(code.max()) + 1 for code in codes]
    if math.prod(values) > ROWS:
        columns = [_Column(code, _places(number)) for number, code in enumerate(codes)]
        return columns, np.ones(ROWS)
    times = np.bincount(np.ravel_multi_index(tuple(codes), values))
    seen = np.flatnonzero(times)
    different = np.unravel_index(seen, values)
    columns = [_Column(code, code.argsort(kind="stable")) for code in different]
    return columns, times[seen].astype(np.float64)


def made_up(number: int, weight: Floats) -> NDArray[np.intp]:
    """The values of one attribute in the made-up rows, in another order for each attribute."""
    inner = np.cumsum(weight)[:-1] / weight.sum()
    first = np.searchsorted(_MIDDLES, inner, side="right")
    rows = np.append(first, ROWS)
    rows[1:] -= first
    return np.repeat(np.arange(len(weight)), rows)[_order(number)]


@cache
def _order(number: int) -> NDArray[np.intp]:
    return np.random.default_rng(number).permutation(ROWS)


@cache
def _places(number: int) -> NDArray[np.intp]:
    """The made-up rows in the order of an attribute's values, whatever its weights."""
    return _order(number).argsort()


def _against_first(odds: Floats) -> Floats:
    """Log-odds `[…, class]` against the first class."""
    relative: Floats = odds - odds[..., :1]
    return relative


def without_interaction(root: Floats, other: Floats, weights: Floats) -> Floats:
    """Class shares `[…, child, value, class]` with two given margins and no interaction beyond
    them.

    `root[…, child, class]` and `other[…, value, class]` are the class shares of two attributes,
    `weights[…, child, value]` the parts of the rows. It is the log-linear model without the
    three-way term: the effect of each attribute is the same at every value of the other.
    """
    total = (weights.sum(axis=-1)[..., None] * root).sum(axis=-2)[..., None, None, :]
    shares = _normed(root[..., None, :] * other[..., None, :, :] / _normed(total))
    margins = [
        (margin, weights.sum(axis=axis + 1)[..., None], axis)
        for margin, axis in ((root, -2), (other, -3))
    ]
    for _ in range(MARGINS):
        for margin, held, axis in margins:
            expected = (shares * weights[..., None]).sum(axis=axis) / held
            shares = _normed(shares * np.expand_dims(margin / expected, axis))
    return shares


def _normed(shares: Floats) -> Floats:
    normed: Floats = shares / shares.sum(axis=-1, keepdims=True)
    return normed
