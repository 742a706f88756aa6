"""Log-odds that add up, fitted to released class shares: post-processing, which costs nothing.

The sum of log-odds that naive Bayes gives assumes that attributes are independent within a class.
The class shares of every value are also all that a logistic regression on those values would learn
from the rows, if it knew which values occur together: they are its sufficient statistics. `fitted`
takes the attributes to be independent over all rows instead, draws made-up rows from their released
frequencies, and fits the regression to them (iterative proportional fitting: Deming & Stephan 1940;
Darroch & Ratcliff 1972). Where attributes are independent, as in designed tables, this is the
maximum-likelihood model; where they repeat each other, naive Bayes is as good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats

ROWS = 4000  # made-up rows; more change less than the noise of counts does
SWEEPS = 3  # over all attributes; more fit the noise of the released shares
MARGINS = 8  # sweeps over the two margins of a table
LEAST = 1e-6  # of a share, before its logarithm
HIGHEST = 500.0  # log-odds, before the exponential


@dataclass(frozen=True)
class Odds:
    """Log-odds of a row's classes: `start[class]` plus `added[attribute][value, class]`."""

    start: Floats
    added: list[Floats]


def bayes(prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]) -> Odds:
    """Naive Bayes from P(class), P(class | value) `[value, class]` and P(value), per attribute.

    For two classes the sum is shifted and scaled so that its means and variances within the
    classes fit: if it were Gaussian, with means m1 and m0 and variance v, the log-odds would be
    those of all rows + (m1 - m0)/v · (sum - middle).
    """
    added = [
        np.log(np.maximum(share, LEAST)) - np.log(np.maximum(weight @ share / weight.sum(), LEAST))
        for share, weight in zip(shares, weights, strict=True)
    ]
    if len(prior) > 2:
        return Odds(np.log(prior), added)
    mean, variance = np.zeros(2), np.zeros(2)
    sums = [odds[:, 1] - odds[:, 0] for odds in added]
    for odds, share, weight in zip(sums, shares, weights, strict=True):
        within = weight[:, None] * share
        within /= within.sum(axis=0)
        center = odds @ within
        mean += center
        variance += ((odds[:, None] - center) ** 2 * within).sum(axis=0)
    apart = mean[1] - mean[0]
    slope = min(1.0, float(apart / (variance @ prior + 1e-9))) if apart > 0 else 1.0
    start = np.log(prior[1] / prior[0]) - slope * mean.mean()
    halves = np.array([-0.5, 0.5])
    return Odds(start * halves, [slope * odds[:, None] * halves for odds in sums])


def fitted(prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]) -> Odds:
    """The additive log-odds whose expected class shares per value are the released ones.

    Arguments as for `bayes`. The made-up rows are the same in every call, and each value has as
    many of them as its frequency says. Log-odds are against the first class.
    """
    codes = [made_up(number, weight) for number, weight in enumerate(weights)]
    wanted = [_against_first(np.log(np.maximum(share, LEAST)).T) for share in shares]
    start = _against_first(np.log(prior))
    added = [target - start[:, None] for target in wanted]
    odds = start[:, None] + sum(
        _of_rows(part, code) for part, code in zip(added, codes, strict=True)
    )
    for _ in range(SWEEPS):
        for part, target, share, code in zip(added, wanted, shares, codes, strict=True):
            step = target - _expected(odds, share, code)
            part += step
            odds += _of_rows(step, code)
    return Odds(np.insert(start, 0, 0.0), [np.insert(part, 0, 0.0, axis=0).T for part in added])


def _of_rows(odds: Floats, code: NDArray[np.intp]) -> Floats:
    """The same numbers as `odds[:, code]`, faster; in memory, a row's classes are side by side."""
    return odds.T.take(code, axis=0).T


def made_up(number: int, weight: Floats) -> NDArray[np.intp]:
    """The values of one attribute in the made-up rows, in another order for each attribute."""
    inner = np.cumsum(weight)[:-1] / weight.sum()
    return np.searchsorted(inner, (np.arange(ROWS) + 0.5) / ROWS)[_order(number)]


@cache
def _order(number: int) -> NDArray[np.intp]:
    return np.random.default_rng(number).permutation(ROWS)


def _against_first(odds: Floats) -> Floats:
    """Log-odds `[class - 1, …]` against the first class, from logarithms `[class, …]`."""
    relative: Floats = odds[1:] - odds[0]
    return relative


def _expected(odds: Floats, share: Floats, code: NDArray[np.intp]) -> Floats:
    """The log-odds `[class - 1, value]` that the made-up rows of each value expect.

    Every value gets one more row, with the released `share[value, class]`: none is without rows.
    """
    mass = np.exp(np.minimum(odds, HIGHEST))
    mass /= 1 + mass.sum(axis=0)
    values = len(share)
    summed = np.stack([np.bincount(code, weights=part, minlength=values) for part in mass])
    rest = np.bincount(code, minlength=values) - summed.sum(axis=0)
    logs = np.log(np.maximum(np.vstack([rest, summed]) + share.T, LEAST))
    return _against_first(logs)


def without_interaction(root: Floats, other: Floats, weights: Floats) -> Floats:
    """Class shares `[child, value, class]` with two given margins and no interaction beyond them.

    `root[child, class]` and `other[value, class]` are the class shares of two attributes,
    `weights[child, value]` the parts of the rows. It is the log-linear model without the
    three-way term: the effect of each attribute is the same at every value of the other.
    """
    total = (weights.sum(axis=1)[:, None] * root).sum(axis=0)
    total /= total.sum()
    odds = np.log(root)[:, None] + np.log(other)[None] - np.log(total)
    for _ in range(MARGINS):
        for axis, margin in ((1, root), (0, other)):
            held = weights.sum(axis=axis)[:, None]
            expected = (_softmax(odds) * weights[..., None]).sum(axis=axis) / held
            odds += np.expand_dims(np.log(margin) - np.log(expected), axis)
    return _softmax(odds)


def _softmax(odds: Floats) -> Floats:
    mass = np.exp(odds - odds.max(axis=-1, keepdims=True))
    shares: Floats = mass / mass.sum(axis=-1, keepdims=True)
    return shares
