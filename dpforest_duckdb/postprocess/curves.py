"""Class shares of ordered values that follow a smooth curve: post-processing, which costs nothing.

The log-odds of the values, less those of all rows, are a polynomial in the number of the value. Few
coefficients need few rows: where noise hides every single value, it may still show a slope.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats

DEGREES = (1, 2, 3, 4)
WIDTH = 3.0  # standard deviation of a coefficient; Legendre polynomials lie between -1 and 1
MOST_NEWTON_STEPS = 25
PARTS = np.array([1, 0.5, 0.25, 0.1, 0.02, 0])  # of such a step; the likeliest is taken
CLOSE = 1e-3  # a step in coefficients after which the search ends
SHARPEST = 1e9  # curvature of a log-likelihood; more, and matrices may not be positive definite


def fitting_degrees(values: int) -> list[int]:
    """Those of DEGREES with fewer coefficients than values, so none for two values."""
    return [degree for degree in DEGREES if degree + 1 < values]


@cache
def polynomials(values: int, degree: int) -> Floats:
    """Legendre polynomials up to `degree` at equally spaced values: `[value, coefficient]`."""
    found = np.polynomial.legendre.legvander(np.linspace(-1, 1, values), degree)
    return found.astype(np.float64)


def curves(likelihood: Floats, offsets: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Log evidence `[class, degree]` and mean shares `[class, value, degree]` of curves.

    `likelihood[class, value, offset]` is the log-likelihood of each of the equally spaced
    `offsets`, whose shares are `grid[class, offset]`. Degrees with as many coefficients as values,
    or more, are left out, so two values have no curve.

    The prior of each coefficient is Gaussian around 0 with the standard deviation WIDTH. Evidence
    and shares are integrals over coefficients, by two points of Gauss-Hermite quadrature in each
    direction around the likeliest curve (Naylor and Smith, Applications of a method for the
    efficient computation of posterior distributions, Applied Statistics, 1982).
    """
    classes, values, _ = likelihood.shape
    degrees = fitting_degrees(values)
    evidence, means = np.empty((classes, len(degrees))), np.empty((classes, values, len(degrees)))
    known = _Known(likelihood, offsets)
    for number, degree in enumerate(degrees):
        shape = polynomials(values, degree)
        likeliest, curvature = _likeliest(known, shape)
        roots = np.linalg.cholesky(curvature)  # of the precision
        points = likeliest[:, None] + _corners(degree + 1) @ np.linalg.inv(roots)
        height = known.log_posterior(points, shape)
        top = height.max(axis=1)
        mass = np.exp(height - top[:, None])
        scale = np.log(WIDTH * np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        evidence[:, number] = top + np.log(mass.mean(axis=1)) - scale + (degree + 1) / 2
        mass /= mass.sum(axis=1, keepdims=True)
        means[..., number] = np.einsum("cp,cpv->cv", mass, known.shares(points, shape, grid))
    return evidence, means


class _Known:
    """The log-likelihood `[class, value, offset]`, its slope and its curvature.

    Between offsets they are interpolated linearly.
    """

    def __init__(self, likelihood: Floats, offsets: Floats) -> None:
        apart = offsets[1] - offsets[0]
        slope = np.gradient(likelihood, apart, axis=2)
        self._likelihood, self._slope = np.ascontiguousarray(likelihood), slope
        self._curvature = np.clip(-np.gradient(slope, apart, axis=2), 0, SHARPEST)
        self.classes = len(likelihood)
        self._first, self._apart, self._last = offsets[0], apart, len(offsets) - 1
        # `[class, 1, value]`: the index of the first offset in an array with all three axes as one
        self._start = np.arange(0, likelihood.size, len(offsets)).reshape(self.classes, 1, -1)

    def log_posterior(self, points: Floats, shape: Floats) -> Floats:
        """The log posterior density `[class, point]`, up to a constant, of the coefficients
        `points[class, point, coefficient]`; `shape[value, coefficient]` are the polynomials.

        A curve that leaves the grid stays at its end.
        """
        likelihood = self._at(points @ shape.T, self._likelihood)[0].sum(axis=2)
        posterior: Floats = likelihood - (points**2).sum(axis=2) / (2 * WIDTH**2)
        return posterior

    def slope_and_curvature(self, coefficients: Floats, shape: Floats) -> tuple[Floats, Floats]:
        """The gradient `[class, coefficient]` of `log_posterior`, and its negative second
        derivatives `[class, coefficient, coefficient]`.

        They are positive definite, because those of the likelihood are cut off at 0.
        """
        at = self._at(coefficients[:, None] @ shape.T, self._slope, self._curvature)
        slope, curvature = (figure[:, 0] for figure in at)
        curvature = (shape.T * curvature[:, None]) @ shape + np.eye(shape.shape[1]) / WIDTH**2
        gradient = (slope[:, None] @ shape)[:, 0] - coefficients / WIDTH**2
        return gradient, curvature

    def shares(self, points: Floats, shape: Floats, grid: Floats) -> Floats:
        """The share `[class, point, value]` of each value, from `grid[class, offset]`."""
        places, parts = self._places(points @ shape.T)
        places += np.arange(0, grid.size, grid.shape[1])[:, None, None]
        return _between(grid, places, parts)

    def _at(self, curve: Floats, *figures: Floats) -> list[Floats]:
        """The figures `[class, value, offset]` at `curve[class, point, value]`, in its shape."""
        places, parts = self._places(curve)
        places += self._start
        return [_between(figure, places, parts) for figure in figures]

    def _places(self, curve: Floats) -> tuple[NDArray[np.intp], Floats]:
        """The index of the offset below each of `curve`, and the part of the way to the next."""
        # np.clip would take several times as long
        place = np.minimum(np.maximum((curve - self._first) / self._apart, 0), self._last)
        below = np.minimum(place.astype(np.intp), self._last - 1)
        return below, place - below


def _between(figures: Floats, places: NDArray[np.intp], parts: Floats) -> Floats:
    """The figures at some places, of all axes as one, and `parts` of the way to the next."""
    below = figures.take(places)
    found: Floats = below + parts * (figures.take(places + 1) - below)
    return found


def _likeliest(known: _Known, shape: Floats) -> tuple[Floats, Floats]:
    """The likeliest coefficients `[class, coefficient]`, and the curvature there.

    By Newton's method. No step changes a coefficient by more than 1, and the likeliest of several
    parts of it is taken.
    """
    coefficients = np.zeros((known.classes, shape.shape[1]))
    every, moved = np.arange(known.classes), np.full(known.classes, np.inf)
    for _ in range(MOST_NEWTON_STEPS):
        slope, curvature = known.slope_and_curvature(coefficients, shape)
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        step /= np.maximum(np.abs(step).max(axis=1, keepdims=True), 1)
        tried = coefficients[:, None] + PARTS[:, None] * step[:, None]
        best = tried[every, known.log_posterior(tried, shape).argmax(axis=1)]
        best = np.where(moved[:, None] < CLOSE, coefficients, best)  # each class ends by itself
        moved = np.abs(best - coefficients).max(axis=1)
        coefficients = best
        if (moved < CLOSE).all():
            break
    return coefficients, known.slope_and_curvature(coefficients, shape)[1]


@cache
def _corners(directions: int) -> Floats:
    """The points `[point, direction]` at -1 or 1 in each direction."""
    return np.array(list(product((-1.0, 1.0), repeat=directions)))
