"""Models from tables below roots: post-processing, which costs nothing.

The first root divides the rows by its values, and a second root divides each part again. Each of
these children has a table of every other attribute and the class. So the sums of every child have
other log-odds (NBTree: Kohavi 1996; AODE: Webb et al. 2005), which show how the roots interact with
the others. The sums of the tables over the children are the tables of all rows. The class
shares of a child are estimated around those without interaction, by the noise of its counts, level
by level: where noise hides the interaction, the child has the log-odds of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.postprocess.additive import (
    Odds,
    information,
    iterative_proportional_fit,
    naive_bayes,
    without_interaction,
)
from dpforest_duckdb.postprocess.class_shares import adjusted, class_shares, shares_around
from dpforest_duckdb.postprocess.noisy_shares import noisy_shares
from dpforest_duckdb.postprocess.share_likelihoods import NoisyTable
from dpforest_duckdb.privacy.noise import LEAST_VARIANCE
from dpforest_duckdb.splits.table_codes import code_of

EMPTY = 1e-3  # the part of all rows that is spread over all cells, so that each has weight
FEW = (1, 2, 4)  # strongest attributes, for models of these alone
Fit = Callable[[Floats, Sequence[Floats], Sequence[Floats]], Odds]
FITS: tuple[Fit, ...] = (naive_bayes, iterative_proportional_fit)


@dataclass(frozen=True)
class ChildTables:
    """Released tables: `totals[child, class]` and, per attribute, `counts[child, value, class]`.

    A child is a combination of values of all `roots`; the last root's values vary fastest. Without
    roots there is one child. Values are the cells that the domain describes. `attributes` are those
    of the tables; `noise` and `noise_of_totals` are standard deviations of one count.
    """

    domain: Domain
    roots: list[int]
    attributes: list[int]
    totals: Integers
    counts: list[Integers]
    noise: list[float]
    noise_of_totals: float

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each root."""
        return tuple(len(self.domain.attributes[root].described) for root in self.roots)


@dataclass(frozen=True)
class Model:
    """Log-odds of the children, and those of all rows, for rows in no child.

    `places` are those of the model's attributes among the tables' attributes. `otherwise` has one
    child: all rows. What it adds is that of the roots, then of the model's attributes, by naive
    Bayes, which takes the least time: few rows are in no child.
    """

    places: tuple[int, ...]
    odds: Odds
    otherwise: Odds


@dataclass(frozen=True)
class _Table:
    """Noisy `counts[root, …, value, class]` of an attribute with the variance of one count.

    There is an axis for each root. `ordered` is the number of first values whose order may be
    used.
    """

    counts: Floats
    variance: float
    ordered: int

    def at(self, level: int, roots: int) -> tuple[Floats, float]:
        """Counts `[node, value, class]` and their variance below the first `level` of the roots."""
        below = tuple(range(level, roots))
        summed = math.prod(self.counts.shape[axis] for axis in below)
        counts = self.counts.sum(axis=below)
        return counts.reshape(-1, *counts.shape[-2:]), self.variance * summed


@dataclass(frozen=True)
class _Shares:
    """Class shares `of[node, value, class]`, and `parts[node, value]` of the rows."""

    of: Floats
    parts: Floats


@dataclass(frozen=True)
class _Level:
    """Class shares of each node `starts[node, class]`, and below the values of attributes."""

    starts: Floats
    shares: list[_Shares]

    def fitted(self, fit: Fit, used: Sequence[_Shares]) -> Odds:
        """The log-odds of a model of some of the attributes."""
        return fit(self.starts, [each.of for each in used], [each.parts for each in used])


def models(tables: ChildTables) -> list[Model]:
    """Models of the same tables: naive Bayes, an iterative proportional fit, then naive Bayes of
    the FEW attributes that say most, for each number below that of all.
    """
    below, of_all = _estimated(tables)
    of_roots, of_attributes = of_all.shares[: len(tables.roots)], of_all.shares[len(tables.roots) :]
    said = [information(each.of, each.parts) for each in below.shares]
    strongest = np.argsort(np.negative(said), kind="stable").tolist()
    fits = [(fit, list(range(len(said)))) for fit in FITS]
    fits += [(naive_bayes, strongest[:few]) for few in FEW if few < len(said)]
    found = []
    for fit, places in fits:
        children = below.fitted(fit, [below.shares[place] for place in places])
        otherwise = children
        if tables.roots:
            used = [of_attributes[place] for place in places]
            otherwise = of_all.fitted(naive_bayes, [*of_roots, *used])
        found.append(Model(tuple(places), children, otherwise))
    return found


def _estimated(tables: ChildTables) -> tuple[_Level, _Level]:
    """The children, and all rows; the latter also have the shares of the roots, which come first.

    From all rows down, root by root.
    """
    totals, spread = _totals(tables)
    roots = len(tables.roots)
    prior = noisy_shares(totals.sum(axis=0), spread * len(totals))
    divided = [*_of_roots(tables, totals, spread), *_of_attributes(tables, totals, spread)]
    of_all = _Level(prior[None], _over_all(divided, roots, prior))
    below = of_all
    for level in range(1, roots + 1):
        divided = divided[1:]
        root, *others = below.shares
        starts = root.of.reshape(-1, len(prior))
        below = _Level(starts, _below(divided, level, roots, root, others))
    return below, of_all


def _over_all(tables: Sequence[_Table], roots: int, prior: Floats) -> list[_Shares]:
    """Class shares in all rows, from tables and the shares `prior[class]`."""
    summed = [table.at(0, roots) for table in tables]
    noisy = [
        NoisyTable(counts[0], variance, table.ordered)
        for table, (counts, variance) in zip(tables, summed, strict=True)
    ]
    return [
        _Shares(shares[None], _parts(counts, np.ones(1)))
        for shares, (counts, _) in zip(class_shares(noisy, prior), summed, strict=True)
    ]


def _below(
    tables: Sequence[_Table], level: int, roots: int, root: _Shares, above: Sequence[_Shares]
) -> list[_Shares]:
    """Class shares one level further down, around those without interaction with its root."""
    noisy, parts = list[NoisyTable](), list[Floats]()
    for table in tables:
        counts, variance = table.at(level, roots)
        parts.append(_parts(counts, root.parts.ravel()))
        noisy.append(NoisyTable(counts.reshape(-1, counts.shape[2]), variance))
    found = shares_around(noisy, _expected(root, above, parts))
    return [
        _Shares(shares.reshape(*part.shape, -1), part)
        for shares, part in zip(found, parts, strict=True)
    ]


def _expected(root: _Shares, above: Sequence[_Shares], parts: Sequence[Floats]) -> list[Floats]:
    """Class shares `[cell, class]` of each table, if its attribute does not interact with the root.

    `parts[child, value]` are those of the rows.
    """
    weights = [part.reshape(*root.parts.shape, -1) for part in parts]
    sizes = [part.shape[1] for part in parts]
    over = np.concatenate([shares.of for shares in above], axis=1)
    shares = without_interaction(root.of, over, np.concatenate(weights, axis=2), sizes)
    of_tables = np.split(shares, np.cumsum(sizes)[:-1], axis=2)
    return [each.reshape(-1, each.shape[3]) for each in of_tables]


def _parts(counts: Floats, nodes: Floats) -> Floats:
    """The parts of all rows `[node, value]`, from noisy counts and the `nodes`' parts."""
    held = counts.sum(axis=2)
    parts = np.clip(held, 0, None) + EMPTY * max(float(held.sum()), 1.0) / held.size
    scaled: Floats = parts * (nodes / parts.sum(axis=1))[:, None]
    return scaled


def _totals(tables: ChildTables) -> tuple[Floats, float]:
    """The minimum-variance rows `[child, class]` of every child, and their variance.

    Tables that are released as counts, not as contrasts, give another estimate: their sum.
    """
    variance = max(tables.noise_of_totals**2, LEAST_VARIANCE)
    weighted, exactness = tables.totals / variance, 1 / variance
    for number, counts, noise in zip(tables.attributes, tables.counts, tables.noise, strict=True):
        if not code_of(tables.domain.attributes[number]).by_contrasts:
            variance = counts.shape[1] * max(noise**2, LEAST_VARIANCE)
            weighted, exactness = weighted + counts.sum(axis=1) / variance, exactness + 1 / variance
    return weighted / exactness, 1 / exactness


def _of_roots(tables: ChildTables, totals: Floats, spread: float) -> list[_Table]:
    """The tables of the roots; the axis of a table's root becomes that of its values."""
    shaped = totals.reshape(*tables.shape, -1)
    return [
        _Table(
            np.expand_dims(np.moveaxis(shaped, axis, -2), axis),
            spread,
            tables.domain.attributes[root].used_in_order,
        )
        for axis, root in enumerate(tables.roots)
    ]


def _of_attributes(tables: ChildTables, totals: Floats, spread: float) -> list[_Table]:
    """The tables of the other attributes, adjusted to add up to the totals of every child."""
    found = []
    for number, counts, noise in zip(tables.attributes, tables.counts, tables.noise, strict=True):
        moved, variance = adjusted(counts, max(noise**2, LEAST_VARIANCE), totals, spread)
        shaped = moved.reshape(*tables.shape, *moved.shape[1:])
        found.append(_Table(shaped, variance, tables.domain.attributes[number].used_in_order))
    return found
