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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats

AT_ONCE = 2**17  # figures of made-up rows that are fitted together
ROWS = 4000  # made-up rows; more change less than the noise of counts does
SWEEPS = 3  # over all attributes; more fit the noise of the released shares
MARGINS = 8  # sweeps over the two margins of a table
LEAST = 1e-6  # of a share, before its logarithm
NONE = 1e-300  # rows, so that none are 0 / 0
_MIDDLES = (np.arange(ROWS) + 0.5) / ROWS


@dataclass(frozen=True)
class Odds:
    """Log-odds of a row's classes: `start[child, class]` plus `added[attribute][child, value,
    class]`.
    """

    start: Floats
    added: list[Floats]


def naive_bayes(prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]) -> Odds:
    """Naive Bayes within each child, from P(class) `[child, class]` and, per attribute,
    P(class | value) `[child, value, class]` and P(value) `[child, value]`.

    For two classes the sum is shifted and scaled (`calibration`).
    """
    added = [
        np.log(np.maximum(share, LEAST)) - np.log(np.maximum(_mean(share, weight), LEAST))
        for share, weight in zip(shares, weights, strict=True)
    ]
    if prior.shape[1] > 2:
        return Odds(np.log(prior), added)
    sums = [odds[..., 1] - odds[..., 0] for odds in added]
    start, slope = calibration(prior, sums, shares, weights)
    halves = np.array([-0.5, 0.5])
    scaled = [(slope[:, None] * odds)[..., None] * halves for odds in sums]
    return Odds(start[:, None] * halves, scaled)


def _mean(share: Floats, weight: Floats) -> Floats:
    """The mean share of each class, `[child, 1, class]`."""
    mean: Floats = weight[:, None] @ share / weight.sum(axis=1)[:, None, None]
    return mean


def information(share: Floats, weight: Floats) -> float:
    """How much an attribute says about the class: their mutual information, in nats.

    From P(class | value) `[…, value, class]` and P(value) `[…, value]`; with children the sum of
    what it says in each of them.
    """
    parts = weight[..., None] * share
    mean = parts.sum(axis=-2, keepdims=True) / weight.sum(axis=-1)[..., None, None]
    ratio = np.maximum(share, LEAST) / np.maximum(mean, LEAST)
    return float((parts * np.log(ratio)).sum())


def calibration(
    prior: Floats, added: Sequence[Floats], shares: Sequence[Floats], weights: Sequence[Floats]
) -> tuple[Floats, Floats]:
    """The shift and the scale `[…]` of a sum of two classes' log-odds that fit its means and
    variances within the classes.

    `added[…, value]` are what an attribute adds, the others as for `naive_bayes`, with children or
    without. If the sum were Gaussian, with means m1 and m0 and variance v, the log-odds would be
    those of all rows + (m1 - m0)/v · (sum - middle).
    """
    mean, variance = np.zeros(prior.shape), np.zeros(prior.shape)
    for odds, share, weight in zip(added, shares, weights, strict=True):
        within = weight[..., None] * share
        within /= within.sum(axis=-2, keepdims=True)
        center = (odds[..., None] * within).sum(axis=-2)
        mean += center
        variance += ((odds[..., None] - center[..., None, :]) ** 2 * within).sum(axis=-2)
    apart = mean[..., 1] - mean[..., 0]
    fitting = np.minimum(apart / ((variance * prior).sum(axis=-1) + 1e-9), 1)
    slope: Floats = np.where(apart > 0, fitting, 1)
    shift: Floats = np.log(prior[..., 1] / prior[..., 0]) - slope * mean.mean(axis=-1)
    return shift, slope


def iterative_proportional_fit(
    prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]
) -> Odds:
    """The additive log-odds whose expected class shares per value are the released ones.

    Arguments as for `naive_bayes`. The made-up rows are the same in every call, and each value has
    as many of them as its frequency says. Every value gets one more row, with its released shares,
    so that none is without rows. Log-odds are against the first class.
    """
    children, classes = prior.shape
    rows = min(ROWS, math.prod(weight.shape[1] for weight in weights))  # that differ, in a child
    at_once = max(1, AT_ONCE // (rows * classes))
    added = [np.empty(share.shape) for share in shares]
    for first in range(0, children, at_once):
        some = slice(first, first + at_once)
        fitted = _fitted(
            prior[some], [share[some] for share in shares], [weight[some] for weight in weights]
        )
        for part, odds in zip(added, fitted, strict=True):
            part[some] = _against_first(odds)
    return Odds(_against_first(np.log(prior)), added)


def _fitted(prior: Floats, shares: Sequence[Floats], weights: Sequence[Floats]) -> Iterator[Floats]:
    """What attributes add `[child, value, class]`, fitted to made-up rows of all children.

    Places are numbers of a child and a value.
    """
    columns, child, rows = _made_up_rows(weights)
    classes = prior.shape[1]
    released = [share.reshape(-1, classes).T for share in shares]  # `[class, place]`
    wanted = [np.maximum(share, LEAST) for share in released]
    ahead = [weight.shape[1] for weight in weights]
    added = [  # factors of the odds
        target / prior.T.repeat(values, axis=1)
        for target, values in zip(wanted, ahead, strict=True)
    ]
    odds = np.log(prior).T.take(child, axis=1) + sum(
        np.log(part).take(column.place, axis=1) for part, column in zip(added, columns, strict=True)
    )
    held = np.exp(odds - odds.max(axis=0))  # `[class, row]`: rows of each class
    held *= rows / held.sum(axis=0)
    for _ in range(SWEEPS):
        for part, target, share, column in zip(added, wanted, released, columns, strict=True):
            factor = target / np.maximum(column.sums(held, share.shape[1]) + share, LEAST)
            part *= factor
            # all are inside: no check, which takes time
            held *= factor.take(column.place, axis=1, mode="clip")
            held *= rows / np.maximum(held.sum(axis=0), NONE)
    return (np.log(part).T.reshape(share.shape) for part, share in zip(added, shares, strict=True))


@dataclass(frozen=True)
class _Column:
    """The `place[row]` of made-up rows, of a child and a value of an attribute, and the rows in the
    order of places.
    """

    place: NDArray[np.intp]
    in_order: NDArray[np.intp]

    @cached_property
    def _runs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The places that occur, and where each begins in the order."""
        times = np.bincount(self.place)
        places = times.nonzero()[0]
        return places, (times.cumsum() - times)[places]

    def sums(self, figures: Floats, places: int) -> Floats:
        """The sums `[class, place]` of `figures[class, row]`."""
        found, (occur, first) = np.zeros((len(figures), places)), self._runs
        found[:, occur] = np.add.reduceat(figures.take(self.in_order, axis=1), first, axis=1)
        return found


def _made_up_rows(
    weights: Sequence[Floats],
) -> tuple[list[_Column], NDArray[np.intp], Floats]:
    """Rows of each child that differ, by attribute; the child of each, and how often it occurs,
    which may be never.

    All rows, once each, if there are more combinations of values than rows.
    """
    children = np.arange(len(weights[0]))[:, None]
    codes = [made_up(number, weight) for number, weight in enumerate(weights)]  # `[child, row]`
    values = [weight.shape[1] for weight in weights]
    combinations = math.prod(values)
    if combinations > ROWS:
        columns = [
            _Column((children * size + code).ravel(), (children * ROWS + _places(number)).ravel())
            for number, (code, size) in enumerate(zip(codes, values, strict=True))
        ]
        return columns, children.repeat(ROWS), np.ones(children.size * ROWS)
    combined = children
    for code, size in zip(codes, values, strict=True):
        combined = combined * size + code
    times = np.bincount(combined.ravel(), minlength=children.size * combinations)
    columns, child = _all_rows(children.size, tuple(values))
    return columns, child, times.astype(np.float64)


@lru_cache(maxsize=4)  # a program may train many models on one table
def _all_rows(children: int, values: tuple[int, ...]) -> tuple[list[_Column], NDArray[np.intp]]:
    """A row for each child and combination of values, by attribute, and the child of each."""
    child, *codes = np.indices((children, *values)).reshape(1 + len(values), -1)
    places = [child * size + code for code, size in zip(codes, values, strict=True)]
    return [_Column(place, _order_of(place)) for place in places], child


def _order_of(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows in the order of their places: NumPy sorts small integers much faster."""
    return places.astype(np.min_scalar_type(places.max())).argsort(kind="stable")


def made_up(number: int, weight: Floats) -> NDArray[np.intp]:
    """The values `[child, row]` of one attribute in the made-up rows, in another order for each
    attribute. `weight[child, value]` are their frequencies.
    """
    children, values = weight.shape
    inner = np.cumsum(weight, axis=1)[:, :-1] / weight.sum(axis=1, keepdims=True)
    first = np.searchsorted(_MIDDLES, inner, side="right")
    rows = np.diff(first, axis=1, prepend=0, append=ROWS)
    codes = np.tile(np.arange(values), children).repeat(rows.ravel())
    return codes.reshape(children, ROWS).take(_order(number), axis=1)


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


def without_interaction(
    root: Floats, other: Floats, weights: Floats, sizes: Sequence[int]
) -> Floats:
    """Class shares `[…, child, value, class]` with two given margins and no interaction beyond
    them.

    `root[…, child, class]` are the class shares of one attribute, `other[…, value, class]` those of
    others, one after the other, with `sizes` as their numbers of values. Each has a table with the
    root. `weights[…, child, value]` are the parts of the rows. It is the log-linear model without
    the three-way term: the effect of each attribute is the same at every value of the other.
    """
    of_table = np.arange(len(sizes)).repeat(sizes)
    first, parts = np.cumsum([0, *sizes[:-1]]), weights[..., None]

    def totals(figures: Floats) -> Floats:
        """The sums over the values of each table, at each of its values."""
        return np.add.reduceat(figures, first, axis=-2).take(of_table, axis=-2)

    root, other = root[..., None, :], other[..., None, :, :]
    wanted, wanted_of_values = root * totals(parts), other * parts.sum(axis=-3, keepdims=True)
    shares = _normed(root * other / _normed(wanted.sum(axis=-3, keepdims=True)))
    for _ in range(MARGINS):
        shares *= wanted / totals(shares * parts)
        shares /= shares.sum(axis=-1, keepdims=True)
        shares *= wanted_of_values / (shares * parts).sum(axis=-3, keepdims=True)
        shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _normed(shares: Floats) -> Floats:
    """Shares `[…, class]` that sum to 1."""
    normed: Floats = shares / shares.sum(axis=-1, keepdims=True)
    return normed
