"""The steps of boosting, from noisy sums of gradients: post-processing, which costs nothing.

They are Newton steps on the logistic loss, as in LogitBoost (Friedman, Hastie & Tibshirani, Annals
of Statistics, 2000), shrunk where the sums may be noise. Their prior is a mixture of normal
distributions around 0, whose weights are learnt as in adaptive shrinkage (Stephens, Biostatistics,
2017).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.postprocess.curves import fitting_degrees, polynomials
from dpforest_duckdb.postprocess.share_likelihoods import EM_TURNS

STEP_WIDTHS = (0.1, 0.3, 1.0, 2.5)  # prior standard deviations of a step, in log-odds
LEAST_HESSIAN = 0.25  # at a value: that of a single row at even odds


class StepWidths:
    """How wide steps are, learnt from the steps fitted before: empirical Bayes.

    `weights` are the most likely shares of STEP_WIDTHS, as if one step of each width had been seen
    before. So where most attributes say nothing, a step stays near 0 unless its own sums tell more.
    """

    def __init__(self) -> None:
        self.weights = np.full(len(STEP_WIDTHS), 1 / len(STEP_WIDTHS))
        self._likelihoods = np.eye(len(STEP_WIDTHS))

    def learn(self, evidence: Floats) -> None:
        """Take in the log evidence `[width]` of one more step, by expectation maximisation."""
        likelihood = np.exp(evidence - evidence.max())
        self._likelihoods = np.vstack([self._likelihoods, likelihood])
        for _ in range(EM_TURNS):
            parts = self._likelihoods * self.weights
            self.weights = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)


def steps(
    gradients: Floats,
    hessians: Floats,
    variance: float,
    ordered: int = 0,
    *,
    largest: float,
    widths: StepWidths,
) -> tuple[Floats, Floats]:
    """The log-odds `[value]` to add, and the standard deviation `[value]` of the noise in them, to
    first order. `widths` learns from them.

    `gradients[value]` and `hessians[value]` are noisy sums over the rows of each value, released.

    A gradient is hessian · step plus an error of sampling and of noise, with variances hessian and
    `variance`. A hessian is at least |gradient| / `largest`, so that no step is larger: where a
    model is overconfident, its hessians are almost zero, and Newton's method would overshoot. Steps
    are Gaussian with a width that is averaged over, in models weighted by their evidence and by
    `widths`. In some models the steps of the first `ordered` values follow a polynomial, of the
    degrees of `curves`.
    """
    bend = np.maximum(np.maximum(hessians, LEAST_HESSIAN), np.abs(gradients) / largest)
    spread = variance + bend
    squares = np.array(STEP_WIDTHS)[:, None] ** 2
    whole = bend**2 * squares + spread  # `[width, value]`: the variance of a gradient
    apart = -(gradients**2 / whole + np.log(whole)) / 2  # if steps do not depend on each other
    shapes = _step_shapes(ordered)
    evidence, gains = _along(gradients[:ordered], bend[:ordered], spread[:ordered], shapes)
    worth = np.concatenate([apart.sum(axis=1)[None], evidence + apart[:, ordered:].sum(axis=1)])
    weights = np.exp(worth - worth.max()) * widths.weights  # `[model, width]`
    widths.learn(np.logaddexp.reduce(worth, axis=0))
    weights /= weights.sum()
    alone = squares * bend / whole
    slope = weights.sum(axis=0) @ alone
    block = np.diag(weights[0] @ alone[:, :ordered])  # `[value, gradient]` of ordered values
    block += np.einsum("dvc,dw,dwcg->vg", shapes, weights[1:], gains, optimize=True)
    found = np.concatenate([block @ gradients[:ordered], (slope * gradients)[ordered:]])
    squared = np.concatenate([(block**2).sum(axis=1), slope[ordered:] ** 2])
    return np.clip(found, -largest, largest), np.sqrt(variance * squared)


@cache
def _step_shapes(values: int) -> Floats:
    """Polynomials `[degree, value, coefficient]`, 0 for coefficients that a degree does not have.

    Each degree is scaled so that steps have the width of its coefficients, on average over values.
    """
    degrees = fitting_degrees(values)
    shapes = np.zeros((len(degrees), values, max(degrees, default=0) + 1))
    for number, degree in enumerate(degrees):
        shape = polynomials(values, degree)
        shapes[number, :, : degree + 1] = shape * math.sqrt(values / (shape**2).sum())
    return shapes


def _along(
    gradients: Floats, bend: Floats, spread: Floats, shapes: Floats
) -> tuple[Floats, Floats]:
    """Steps that follow `shapes`: their log evidence `[degree, width]`, and the coefficients
    `[degree, width, coefficient, value]` for a gradient of 1 at each value.

    `bend[value]` are hessians, `spread[value]` the variances of gradients around hessian · step. In
    the prior, coefficients are independent. The equations to solve are for coefficients, not for
    values, so they stay few with many values, and solvable with huge hessians.
    """
    squares = np.array(STEP_WIDTHS)[:, None, None] ** 2
    tilt = bend[:, None] * shapes  # gradients for a coefficient of 1
    weighted = (tilt / spread[:, None]).swapaxes(1, 2)
    precision = np.eye(shapes.shape[2]) / squares + (weighted @ tilt)[:, None]
    gains = np.linalg.solve(
        precision, np.broadcast_to(weighted[:, None], (*precision.shape[:3], len(bend)))
    )
    likeliest = gains @ gradients
    missed = gradients - likeliest @ tilt.swapaxes(1, 2)
    of_steps = (likeliest**2 / squares[..., 0]).sum(axis=2)
    logs = np.linalg.slogdet(precision * squares)[1] + np.log(spread).sum()
    evidence: Floats = -((missed**2 / spread).sum(axis=2) + of_steps + logs) / 2
    return evidence, gains
