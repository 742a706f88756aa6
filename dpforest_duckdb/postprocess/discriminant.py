"""Linear discriminant analysis (Fisher 1936, Welch 1939) from noisy class means; post-processing.

The rows of a class are taken to be normal, around the mean of the class, with the same covariances
in all classes. Then the log-odds of two classes are linear in a row's positions, so they are sums
of a number for each position: a forest of one-split trees. Without covariances, the positions are
taken to be independent within a class.

Noise is part of the model. Class means are shrunk towards the mean of all rows by the estimated
part that noise has in their variance: empirical Bayes (Efron & Morris 1973, after James & Stein
1961), without their guarantee, because variances differ between classes. Variances are shrunk
towards their mean. The noise that is left in the means is added to the variance within a class.
Covariances are shrunk towards 0 in the same way, and the standard deviation of the noise in the
eigenvalues of their matrix is added to all of them, so that fewer are too small: a ridge. Means and
squares are brought within their bounds, as noise may be far above the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpforest_duckdb.arrays import Floats

LEAST_VARIANCE = 0.03  # of a position within a class; 1/3 if positions are spread evenly
LEAST_EIGENVALUE = 0.02
BETWEEN = 0.1  # the variance between classes that sets how much less classes of few rows weigh
NOTHING = 1e-6  # in place of 0, by which nothing can be divided
DRAWS = 40  # bootstrap samples


@dataclass(frozen=True)
class Moments:
    """What is released of the positions, in parts of the largest one.

    `rows[class]` are estimates from noisy counts, above 0. `sums[class, dimension]` have noise of
    variance `sum_noise[dimension]`. `squares[dimension]` are means over all rows, with noise of
    variance `square_noise`. `products[dimension, dimension]` are such means, with noise of variance
    `product_noise`; None if they were not released.
    """

    rows: Floats
    sums: Floats
    sum_noise: Floats
    squares: Floats
    square_noise: float
    products: Floats | None = None
    product_noise: float = 0.0


def discriminant(moments: Moments) -> tuple[Floats, Floats]:
    """Weights and constants `[dimension, class]`: the log-odds of a class, but for its frequency,
    are the sum over dimensions of position times weight plus constant.
    """
    share = moments.rows / moments.rows.sum()
    means, left = _class_means(moments, share)
    # E[x²] = variance + Σ share · E[mean²], and E[mean²] = shrunk mean² + what noise leaves in it
    variance = np.clip(moments.squares, 0, 1) - share @ means**2 - left
    variance = np.maximum(_shrunk(variance, moments.square_noise), LEAST_VARIANCE)
    if moments.products is None:
        weights = np.asarray(means / (variance + left))
    else:
        between = (means.T * share) @ means
        covariance = _covariance(moments.products - between, variance, moments.product_noise)
        weights = np.asarray(np.linalg.solve(covariance + np.diag(left), means.T).T)
    return weights.T, (-weights * means / 2).T


def noise_of_log_odds(moments: Moments, places: Sequence[Floats]) -> list[Floats]:
    """The standard deviation `[position, class]` of the noise in what each dimension adds at its
    `places[dimension][position]`, not counting what moves all classes alike.

    From discriminants of the moments with more noise of the same size: a parametric bootstrap
    (Efron 1979). It is post-processing: what is drawn here protects nothing. The noise in the
    numbers of rows is left out.
    """
    random, found = np.random.default_rng(0), list[list[Floats]]()
    for _ in range(DRAWS):
        weights, constants = discriminant(_with_more_noise(moments, random))
        log_odds = [
            place[:, None] * weights[dimension] + constants[dimension]
            for dimension, place in enumerate(places)
        ]
        found.append([each - each.mean(axis=1, keepdims=True) for each in log_odds])
    return [np.std(each, axis=0) for each in zip(*found, strict=True)]


def _with_more_noise(moments: Moments, random: np.random.Generator) -> Moments:
    sums = random.normal(size=moments.sums.shape) * np.sqrt(moments.sum_noise)
    squares = random.normal(size=moments.squares.shape) * np.sqrt(moments.square_noise)
    products = moments.products
    if products is not None:
        upper = np.triu(random.normal(size=products.shape), 1) * np.sqrt(moments.product_noise)
        products = products + upper + upper.T
    return replace(
        moments, sums=moments.sums + sums, squares=moments.squares + squares, products=products
    )


def _class_means(moments: Moments, share: Floats) -> tuple[Floats, Floats]:
    """The shrunk means `[class, dimension]`, and the variance `[dimension]` of the noise that is
    left in them, on average over the classes.
    """
    every = np.clip(moments.sums.sum(axis=0) / moments.rows.sum(), -1, 1)
    raw = moments.sums / moments.rows[:, None]
    noise = moments.sum_noise / moments.rows[:, None] ** 2
    weight = share[:, None] / (BETWEEN + noise)  # classes of few rows say little
    weight = weight / weight.sum(axis=0)
    between = (weight * ((raw - every) ** 2 - noise)).sum(axis=0)
    # 2 · noise² is the variance of a squared figure of normal noise: an approximation
    between = np.maximum(_shrunk(between, 2 * (weight**2 * noise**2).sum(axis=0)), NOTHING)
    kept = between / (between + noise)
    return np.clip(every + kept * (raw - every), -1, 1), share @ (kept * noise)


def _shrunk(raw: Floats, noise: Floats | float) -> Floats:
    """Figures `[dimension]` shrunk towards their mean; `noise` is the variance of their noise."""
    mean = raw.mean()
    spread = max(float(((raw - mean) ** 2 - noise).mean()), 0.0)
    return np.asarray(mean + (raw - mean) * spread / (spread + noise + NOTHING**2))


def _covariance(raw: Floats, variance: Floats, noise: float) -> Floats:
    """A covariance matrix `[dimension, dimension]` within classes, from a noisy one.

    Its diagonal is `variance`; `noise` is the variance of the noise in the other figures.
    """
    size = len(raw)
    others = raw - np.diag(np.diag(raw))
    spread = max(float((others**2).sum()) / max(size * (size - 1), 1) - noise, 0.0)
    kept = spread / (spread + noise + NOTHING**2)
    values, vectors = np.linalg.eigh(np.diag(variance) + kept * others)
    # noise of deviation σ gives a symmetric matrix eigenvalues of deviation σ·√size (Wigner 1958);
    # the smallest is near -2σ·√size, so this adds about half of the worst
    values = np.maximum(values, LEAST_EIGENVALUE) + kept * np.sqrt(noise * size)
    found: Floats = (vectors * values) @ vectors.T
    return found
