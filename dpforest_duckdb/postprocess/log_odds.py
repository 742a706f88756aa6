"""Sums of log-odds from trees of one split: post-processing, which costs nothing.

A table of noisy counts gives every value v of an attribute the log-odds log P(c|v) / P(c), which
are added to those of class c in all rows. Correlated attributes are counted twice, so the plain sum
is overconfident. For two classes it is calibrated by its own mean and variance per class (`Sum`),
and if there are enough rows, by a noisy histogram of two sums (`fitted_sum`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.postprocess.additive import calibration, information, made_up
from dpforest_duckdb.postprocess.class_shares import adjusted, class_shares
from dpforest_duckdb.postprocess.noisy_shares import noisy_shares
from dpforest_duckdb.postprocess.share_likelihoods import NoisyTable
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.postprocess.voting import integer_votes, intercept, of_two
from dpforest_duckdb.privacy.noise import LEAST_VARIANCE, noise_scale
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.request import Grown, Request, Scores
from dpforest_duckdb.splits.table_codes import code_of
from dpforest_duckdb.tree import LEAF, SCALE, Tree, counts_of, noise_of

TINY_SHARE = 1e-9  # so that no logarithm is infinite, and no weight 0 / 0
CUTS = (-1.5, 0.0, 1.5)  # between the bins of a sum
MIDDLES = (-2.5, -0.7, 0.7, 2.5)  # of the bins, about
AT_ONCE = 2**11  # the most values whose rows are estimated together; one table may have more
PRECISION = 4.0  # 1 / variance of the prior of a weight, and of the shift
NEWTON_STEPS = 50  # of the logistic regression
HIGHEST = 500.0  # log-odds, before the exponential


@dataclass(frozen=True)
class Evidence:
    """What follows from the tables.

    `added[tree][value, class]` are the log-odds to add, `shares[tree][value, class]` is P(c|v),
    `weight[tree][value]` the part of all rows, and `prior[class]` the shares of the classes.
    """

    added: list[Floats]
    shares: list[Floats]
    weight: list[Floats]
    prior: Floats


@dataclass(frozen=True)
class Sum:
    """Log-odds of the second of two classes: `start`, and what each value adds, per tree.

    `spread` bounds the standard deviation over rows, in case all trees agree.
    """

    start: float
    added: Sequence[Floats]
    spread: float

    def within_cuts(self) -> Sum:
        """The same, scaled down if needed so that `CUTS` divide its rows."""
        unit = max(1.0, self.spread / MIDDLES[-1])
        return Sum(self.start / unit, [added / unit for added in self.added], self.spread / unit)


def evidence(trees: Sequence[Tree], request: Request, plan: Plan) -> Evidence:
    """The evidence of trees of one multiway split with noisy counts at their leaves.

    A tree without a split has the rows of each class. Cells that the domain does not describe are
    not released: they have no weight and add nothing. All tables count the same rows, so each is
    adjusted to the minimum-variance estimate of the class totals.
    """
    return _evidence(*_divided(trees), request, plan)


def _divided(trees: Sequence[Tree]) -> tuple[list[Tree], list[Tree]]:
    """The trees without a split, which have the rows of each class, and those with one."""
    rows = [tree for tree in trees if tree.kind[0] == LEAF]
    return rows, [tree for tree in trees if tree.kind[0] != LEAF]


def _evidence(
    rows: Sequence[Tree], trees: Sequence[Tree], request: Request, plan: Plan
) -> Evidence:
    """`evidence` of the trees without a split, and of those with one."""
    split_by = [request.domain.attributes[tree.attribute[0]] for tree in trees]
    variances = [_variance(tree) for tree in trees]
    counts = [_counts(tree)[1:] for tree in trees]
    tables = [
        noisy[list(attribute.described)] for attribute, noisy in zip(split_by, counts, strict=True)
    ]
    figures = [(_counts(tree)[0], _variance(tree)) for tree in rows]
    figures += [
        (table.sum(axis=0), len(table) * variance)
        for attribute, table, variance in zip(split_by, tables, variances, strict=True)
        if not (rows and code_of(attribute).by_contrasts)  # whose sum is the rows' figure
    ]
    total, spread = minimum_variance_total(figures, request, plan)
    prior = noisy_shares(total, spread)
    noisy = [
        NoisyTable(*adjusted(table, variance, total, spread), attribute.used_in_order)
        for attribute, table, variance in zip(split_by, tables, variances, strict=True)
    ]
    parts = [
        _part(attribute, rows, shares, prior)
        for attribute, rows, shares in zip(
            split_by, _rows_of_values(noisy), class_shares(noisy, prior), strict=True
        )
    ]
    return Evidence(
        added=[part.added for part in parts],
        shares=[part.shares for part in parts],
        weight=[part.weight for part in parts],
        prior=prior,
    )


@dataclass(frozen=True)
class _Part:
    """The evidence of one tree: `added[value, class]`, `shares[value, class]`, `weight[value]`."""

    added: Floats
    shares: Floats
    weight: Floats


def _rows_of_values(tables: Sequence[NoisyTable]) -> list[Floats]:
    """The part of all rows that has each value `[value]` of a table, for each of the tables.

    Tables of as many values are estimated together, up to AT_ONCE values.
    """
    found, sizes = dict[int, Floats](), [len(table.counts) for table in tables]
    for size in set(sizes):
        alike = [number for number, each in enumerate(sizes) if each == size]
        some = max(1, AT_ONCE // size)
        for start in range(0, len(alike), some):
            together = [tables[number] for number in alike[start : start + some]]
            counts = np.stack([table.counts.sum(axis=1) for table in together])
            variance = np.array([table.variance * table.counts.shape[1] for table in together])
            found.update(zip(alike[start:], noisy_shares(counts, variance), strict=False))
    return [found[number] for number in range(len(tables))]


def _part(attribute: Attribute, rows: Floats, likely: Floats, prior: Floats) -> _Part:
    """The evidence of an attribute, from the part of all `rows[value]` that has each value that the
    domain describes, and the class shares there, `likely[value, class]`.
    """
    cells = list(attribute.described)
    shares, weight = np.tile(prior, (attribute.cells, 1)), np.zeros(attribute.cells)
    added = np.zeros(shares.shape)
    shares[cells], weight[cells] = likely, rows
    added[cells] = np.log(likely / (weight[cells] @ likely))
    return _Part(added, shares, weight)


def _counts(tree: Tree) -> Floats:
    """The noisy counts `[node, class]` as floats."""
    return counts_of(tree).astype(np.float64)


def _variance(tree: Tree) -> float:
    """The variance of one noisy count at a tree's leaves, the same for all of them."""
    return max(float(np.nanmax(noise_of(tree)[tree.leaves])) ** 2, LEAST_VARIANCE)


def minimum_variance_total(
    figures: Sequence[tuple[Floats, float]], request: Request, plan: Plan
) -> tuple[Floats, float]:
    """The minimum-variance estimate of the rows of each class, from the row-count query and all
    figures, and its variance.

    Each figure is noisy rows `[class]` and the variance of one of them.
    """
    count_variance = plan.row_noise(request.rows_per_unit) ** 2
    released = np.array([request.histogram, *(figure for figure, _ in figures)], dtype=np.float64)
    exactness = 1 / np.array([count_variance, *(variance for _, variance in figures)])
    total: Floats = (released * exactness[:, None]).sum(axis=0) / exactness.sum()
    return total, float(1 / exactness.sum())


def weighted_sum(found: Evidence, weights: Sequence[float]) -> Sum:
    """A sum of two classes' evidence, shifted and scaled so that its class means and variances fit.

    If attributes were independent, the log-odds would be the sum. The moments are those of the
    released tables, so this costs nothing.
    """
    added = [w * (a[:, 1] - a[:, 0]) for w, a in zip(weights, found.added, strict=True)]
    shift, scale = calibration(found.prior, added, found.shares, found.weight)
    start, slope = float(shift), float(scale)
    spread = 0.0
    for values, weight in zip(added, found.weight, strict=True):
        spread += math.sqrt(weight @ (values - weight @ values) ** 2)
    return Sum(start, [slope * values for values in added], slope * spread)


def overlap_weight(found: Evidence) -> float:
    """A weight for the sum of attributes that may say the same: 1 / (1 + r), with r what all but
    the strongest say about the class, in parts of the entropy of its shares.

    If m sums of evidence have the same variance and the correlation ρ within a class, the weight
    that makes their sum a linear discriminant is 1 / (1 + (m - 1) ρ). Released tables do not show
    ρ. But attributes that each say all repeat each other, and those that say little need not. So ρ
    is taken to be the part of the entropy that an attribute explains: their mutual information,
    divided by the entropy.
    """
    said = [information(*each) for each in zip(found.shares, found.weight, strict=True)]
    entropy = -float(found.prior @ np.log(np.maximum(found.prior, TINY_SHARE)))
    others = max(sum(said) - max(said, default=0.0), 0.0)
    return 1 / (1 + others / max(entropy, TINY_SHARE))


def sums(found: Evidence) -> list[Sum]:
    """The plain sum, and the log-odds of the attribute that classifies the most rows correctly."""
    trees = len(found.added)
    plain = weighted_sum(found, [1.0] * trees)
    if trees == 1:
        return [plain]
    hits = [
        (weight[:, None] * shares).max(axis=1).sum()
        for weight, shares in zip(found.weight, found.shares, strict=True)
    ]
    weights = [0.0] * trees
    weights[int(np.argmax(hits))] = 1.0
    return [plain, weighted_sum(found, weights)]


def sums_cut(trees: Sequence[Tree], request: Request, plan: Plan) -> Scores:
    """The sums as integer scores of rows, in units of 1 / SCALE, with the cuts of their bins."""
    votes = []
    for each in sums(evidence(trees, request, plan)):
        total = each.within_cuts()
        values = [np.concatenate([[0.0], added]) for added in total.added]  # the root's first
        values[0] = values[0] + total.start
        votes.append([np.rint(value * SCALE).astype(np.int64) for value in values])
    return Scores(votes, [round(cut * SCALE) for cut in CUTS])


def fitted_sum(found: Evidence, joint: Integers, noise: float) -> Sum:
    """The sums with the weights of a logistic regression on `joint[bin, …, class]`, their noisy
    joint histogram.

    `noise` is the scale of the noise in one of its counts. A bin with r rows and probability p has
    the variance r p (1 - p) of sampling, and 2 noise² (p² + (1 - p)²) of noise. So Newton's method
    gives it the weight of the first part. The weights have a Gaussian prior around the plain sum
    alone, as scaled by `within_cuts`. In the hessian, the variance of sampling of a bin is replaced
    by the rows that its prediction is off by, if these are more. Otherwise steps would overshoot
    where the sums are overconfident.
    """
    scaled = [each.within_cuts() for each in sums(found)]
    inputs = np.hstack([_bin_means(scaled, found), np.ones((joint.size // 2, 1))])
    counts = joint.reshape(-1, 2).astype(np.float64)
    clear = counts.sum(axis=1) > 2 * noise  # other bins are mostly noise
    inputs, counts = inputs[clear], np.clip(counts[clear], 0, None)
    total = counts.sum(axis=1)
    plain = np.eye(inputs.shape[1])[0]
    weights = plain.copy()
    for _ in range(NEWTON_STEPS):
        share = 1 / (1 + np.exp(-np.clip(inputs @ weights, -HIGHEST, HIGHEST)))
        sampling, missed = total * share * (1 - share), counts[:, 1] - total * share
        trust = sampling / (sampling + 2 * noise**2 * (share**2 + (1 - share) ** 2) + TINY_SHARE)
        bend = trust * np.maximum(sampling, np.abs(missed))
        gradient = inputs.T @ (trust * missed) - PRECISION * (weights - plain)
        hessian = (inputs * bend[:, None]).T @ inputs + PRECISION * np.eye(len(plain))
        weights += np.clip(np.linalg.solve(hessian, gradient), -1, 1)
    *factors, start = weights
    start += sum(w * each.start for w, each in zip(factors, scaled, strict=True))
    per_tree = zip(*(each.added for each in scaled), strict=True)
    added = [sum(w * a for w, a in zip(factors, tree, strict=True)) for tree in per_tree]
    spread = sum(abs(w) * each.spread for w, each in zip(factors, scaled, strict=True))
    return Sum(float(start), added, float(spread))


def _with_root(tree: Tree, request: Request) -> Tree:
    """The tree with counts at its root, summed from the leaves if the root has none."""
    return sum_upward(tree, request.domain.cells) if math.isnan(noise_of(tree)[0]) else tree


def _bin_means(scaled: Sequence[Sum], found: Evidence) -> Floats:
    """The mean of each sum `[bin, sum]` in the bins of their joint histogram.

    It is that of made-up rows with the released frequencies of values, attribute by attribute. Bins
    without such a row have the middles.
    """
    codes = [made_up(number, weight[None])[0] for number, weight in enumerate(found.weight)]
    scores = [
        each.start + sum(added[code] for added, code in zip(each.added, codes, strict=True))
        for each in scaled
    ]
    places = [np.searchsorted(CUTS, score) for score in scores]
    shape = (len(MIDDLES),) * len(scaled)
    bins = np.ravel_multi_index(places, shape)
    rows = np.bincount(bins, minlength=math.prod(shape))
    axes = np.meshgrid(*[np.array(MIDDLES)] * len(scaled), indexing="ij")
    means = [
        np.where(rows, np.bincount(bins, score, len(rows)) / np.maximum(rows, 1), axis.ravel())
        for axis, score in zip(axes, scores, strict=True)
    ]
    return np.stack(means, axis=1)


def _calibrated(found: Evidence, joint: Integers | None, request: Request, plan: Plan) -> Sum:
    """The sum of two classes, fitted to the noisy histogram; the plain sum if there is none."""
    query = plan.query(Purpose.SCORES)
    if joint is None or query is None:
        return sums(found)[0]
    return fitted_sum(found, joint, float(noise_scale(query.by_depth[0], request.rows_per_unit)))


def log_odds(
    grown: Grown, request: Request, plan: Plan, *, overlapping: bool = False
) -> list[Tree]:
    """The trees with log-odds as votes, after a tree without a split that votes for all rows.

    If attributes are `overlapping`, all log-odds are multiplied by `overlap_weight`. Predictions
    stay the same, but for rounding.
    """
    rows, trees = _divided(grown.trees)
    found = _evidence(rows, trees, request, plan)
    weight = overlap_weight(found) if overlapping else 1.0
    if len(found.prior) == 2:
        total = _calibrated(found, grown.joint, request, plan)
        start, added = of_two(np.array([total.start]))[0], [of_two(odds) for odds in total.added]
    else:
        start, added = np.log(found.prior), found.added
    first = intercept(weight * start, request, plan)
    nothing = np.zeros((1, len(found.prior)), dtype=np.int64)
    return [
        replace(rows[0], votes=first.votes) if rows else first,
        *(
            replace(
                _with_root(tree, request),
                votes=np.concatenate([nothing, integer_votes(weight * odds)]),
            )
            for tree, odds in zip(trees, added, strict=True)
        ),
    ]
