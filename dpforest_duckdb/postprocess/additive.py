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

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats

ROWS = 4000  # made-up rows; more change nothing that the noise of counts does not hide
SWEEPS = 8  # over all attributes; later ones change next to nothing
LEAST = 1e-6  # of a share, before its logarithm


@dataclass(frozen=True)
class Odds:
    """Log-odds of a row's classes: `start[class]` plus `added[attribute][value, class]`."""

    start: Floats
    added: list[Floats]


def bayes(prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]) -> Odds:
    """Naive Bayes from P(class), P(class | value) `[value, class]` and P(value), per attribute.

    For two classes the sum is shifted and scaled so that its own means and variances within the
    classes fit: if it were Gaussian, with means m1 and m0 and variance v, the log-odds would be
    those of all rows + (m1 - m0)/v · (sum - middle).
    """
    added = [
        np.log(np.maximum(own, LEAST)) - np.log(np.maximum(weight @ own / weight.sum(), LEAST))
        for own, weight in zip(shares, weights, strict=True)
    ]
    if len(prior) > 2:
        return Odds(np.log(prior), added)
    mean, variance = np.zeros(2), np.zeros(2)
    sums = [own[:, 1] - own[:, 0] for own in added]
    for own, share, weight in zip(sums, shares, weights, strict=True):
        within = weight[:, None] * share
        within /= within.sum(axis=0)
        center = own @ within
        mean += center
        variance += ((own[:, None] - center) ** 2 * within).sum(axis=0)
    apart = mean[1] - mean[0]
    slope = min(1.0, float(apart / (variance @ prior + 1e-9))) if apart > 0 else 1.0
    start = np.log(prior[1] / prior[0]) - slope * mean.mean()
    halves = np.array([-0.5, 0.5])
    return Odds(start * halves, [slope * own[:, None] * halves for own in sums])


def fitted(prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]) -> Odds:
    """The additive log-odds whose expected class shares per value are the released ones.

    Arguments as for `bayes`. The made-up rows are the same in every call.
    """
    random = np.random.default_rng(0)
    codes: list[NDArray[np.intp]] = [
        random.choice(len(own), size=ROWS, p=own / own.sum()) for own in weights
    ]
    held = [np.bincount(own, minlength=len(w)) for own, w in zip(codes, weights, strict=True)]
    added = [np.log(np.maximum(own, LEAST)) - np.log(prior) for own in shares]
    odds = np.log(prior) + sum(own[code] for own, code in zip(added, codes, strict=True))
    for _ in range(SWEEPS):
        for own, share, code, rows in zip(added, shares, codes, held, strict=True):
            step: Floats = _step(_softmax(odds), share, code, rows)
            own += step
            odds += step[code]
    return Odds(np.log(prior), added)


def _step(
    probability: Floats, share: Floats, code: NDArray[np.intp], rows: NDArray[np.intp]
) -> Floats:
    """What makes the expected shares of one attribute's values the released ones."""
    values, classes = share.shape
    labels = range(classes)
    summed = [np.bincount(code, weights=probability[:, c], minlength=values) for c in labels]
    expected = (np.stack(summed, axis=1) + share) / (rows[:, None] + 1)
    step = np.log(np.maximum(share, LEAST)) - np.log(np.maximum(expected, LEAST))
    known: Floats = np.where((rows > 0)[:, None], step, 0.0)
    return known


def without_interaction(root: Floats, other: Floats, weights: Floats) -> Floats:
    """Class shares `[child, value, class]` with two given margins and no interaction beyond them.

    `root[child, class]` and `other[value, class]` are the class shares of two attributes,
    `weights[child, value]` the parts of the rows. It is the log-linear model without the
    three-way term: what the two attributes say if neither changes what the other one says.
    """
    total = (weights.sum(axis=1)[:, None] * root).sum(axis=0)
    total /= total.sum()
    odds = np.log(root)[:, None] + np.log(other)[None] - np.log(total)
    for _ in range(SWEEPS):
        for axis, margin in ((1, root), (0, other)):
            held = weights.sum(axis=axis)[:, None]
            expected = (_softmax(odds) * weights[..., None]).sum(axis=axis) / held
            odds += np.expand_dims(np.log(margin) - np.log(expected), axis)
    return _softmax(odds)


def _softmax(odds: Floats) -> Floats:
    mass = np.exp(odds - odds.max(axis=-1, keepdims=True))
    shares: Floats = mass / mass.sum(axis=-1, keepdims=True)
    return shares
