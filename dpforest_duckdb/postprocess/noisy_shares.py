"""Parts of all rows, of classes or values, from noisy counts: post-processing, which costs nothing.

The rows of the classes (or values) are taken to be independent gamma numbers with one mean and one
shape. Then their shares have a symmetric Dirichlet distribution. A large shape stands for classes
that are about equally frequent, a small one for a few classes that hold nearly all rows. How likely
each of SHAPES is follows from the noisy counts themselves (Good, The estimation of probabilities,
1965). So where counts differ by no more than their noise, shares are nearly equal. And where one
class holds nearly all rows, the others do not get rows for their noise.
"""

from __future__ import annotations

import math

import numpy as np

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.request import Request

SHAPES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # beforehand, all are equally likely
LEAST = 1e-6  # of the mean: no class has fewer rows
NEAR = 6.0  # standard deviations around a noisy count
POINTS = 64  # of quadrature around a noisy count, and again over all numbers of rows


def noisy_shares(counts: Floats, variance: Floats | float) -> Floats:
    """The posterior means of the shares of all rows, from noisy `counts[…, class]`, or values.

    `variance[…]` is that of the noise in one count. Shares are above 0 and add up to 1.
    """
    classes, deviation = counts.shape[-1], np.sqrt(variance)
    total = np.maximum(counts.sum(axis=-1), np.maximum(deviation * math.sqrt(classes), 1.0))
    deviation, mean = np.asarray(deviation)[..., None], total[..., None] / classes
    rows, widths = _points(counts, deviation, mean)
    fit = -(((rows - counts[..., None]) / deviation[..., None]) ** 2) / 2
    ratio = rows / mean[..., None]
    logs, evidence, expected = np.log(ratio), list[Floats](), list[Floats]()
    for shape in SHAPES:
        # the density of gamma numbers of mean 1
        constant = shape * math.log(shape) - math.lgamma(shape)
        density = fit + (constant + (shape - 1) * logs - shape * ratio)
        top = density.max(axis=-1, keepdims=True)
        mass = np.exp(density - top) * widths
        whole = mass.sum(axis=-1)
        evidence.append((np.log(whole) + top[..., 0]).sum(axis=-1))
        expected.append((mass * rows).sum(axis=-1) / whole)
    worth = np.stack(evidence)
    likely = np.exp(worth - worth.max(axis=0))
    found: Floats = (likely[..., None] * np.stack(expected)).sum(axis=0)
    shares: Floats = found / found.sum(axis=-1, keepdims=True)
    return shares


def counted_shares(request: Request, plan: Plan) -> Floats:
    """The shares `[class]` of all rows by the queries that count them; equal if there are none."""
    if not request.histogram:
        classes = len(request.domain.classes)
        return np.full(classes, 1 / classes)
    variance = plan.row_noise(request.rows_per_unit) ** 2
    return noisy_shares(np.array(request.histogram, dtype=np.float64), variance)


def _points(counts: Floats, deviation: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """Points of quadrature `[…, class, point]`, and how wide a part each stands for. `deviation` is
    that of one count, and `mean` the rows of an average class; both are `[…, 1]`.

    Half of them are around the noisy count, where a large class is. The others are over all numbers
    of rows in equal ratios, because a class with a count below 0 may have very few.
    """
    near = counts[..., None] + deviation[..., None] * np.linspace(-NEAR, NEAR, POINTS)
    anywhere = mean[..., None] * np.geomspace(LEAST, 1.5 * counts.shape[-1], POINTS)
    both = np.concatenate([near, np.broadcast_to(anywhere, near.shape)], axis=-1)
    points = np.sort(np.maximum(both, LEAST * mean[..., None]), axis=-1)
    apart = np.diff(points, axis=-1, prepend=points[..., :1], append=points[..., -1:])
    return points, (apart[..., 1:] + apart[..., :-1]) / 2
