"""What attributes say about the class, from the steps of a sweep: post-processing, costs nothing.

An error in the log-odds of a value costs about half of hessian · error² in the loss (Newton's
approximation). All costs and gains here are in units of hessian · error², from released sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.postprocess.newton_steps import LEAST_HESSIAN

EVEN = 0.5  # the part of draws in which all attributes are equally likely
NOTHING = 1e-12  # added to what may be 0, so that no figure is 0 / 0


@dataclass(frozen=True)
class FittedValues:
    """The step of an attribute: `added[value, score]` in log-odds, and the released
    `hessians[value, score]`: noisy sums over rows, which may be negative.
    """

    added: Floats
    hessians: Floats


def worth_another_step(
    fitted: Sequence[FittedValues], before: float, again: Callable[[int], float]
) -> list[int]:
    """The attributes that should take another step, in their order; at least one.

    `before` is the variance of the noise in the gradients of the steps so far, and `again` that of
    the next ones, by the number of attributes that take them: the fewer, the smaller. The number is
    the one with the largest gain. After a step s, the error that noise leaves costs about what it
    costs after a Wiener filter: e = h s² · v / (h s² + v), with the hessian h and v = variance / h.
    Another step, with v' in place of v, gains e² / (e + v').
    """
    sizes = [each.added.size for each in fitted]
    first = np.cumsum([0, *sizes[:-1]])
    hessian = np.concatenate([np.maximum(each.hessians, LEAST_HESSIAN).ravel() for each in fitted])
    moved = hessian * np.concatenate([each.added.ravel() for each in fitted]) ** 2
    noise = before / hessian
    left = moved * noise / (moved + noise + NOTHING) + NOTHING
    best, most = [0], -1.0
    for number in range(1, len(fitted) + 1):
        gains = left**2 / (left + again(number) / hessian)
        of_attributes = np.add.reduceat(gains, first)
        chosen = np.argsort(-of_attributes, kind="stable")[:number]
        if of_attributes[chosen].sum() > most:
            best, most = sorted(chosen.tolist()), float(of_attributes[chosen].sum())
    return best


def draw_weights(log_odds: Sequence[Floats], hessians: Sequence[Floats]) -> Floats:
    """How likely each attribute is to be drawn for a split of a random tree; the sum is 1.

    Half of the draws are uniform, because attributes may say something only together. The other
    half are in proportion to what an attribute says alone: Σ h (s - mean of s)² over its values and
    the classes. s are the `log_odds[value, class]` that it adds, less their mean over the classes,
    h is the sum of `hessians[value, score]` over the scores, and weighs the mean of s over values.
    """
    said = np.array([_said(*each) for each in zip(log_odds, hessians, strict=True)]) + NOTHING
    weights: Floats = EVEN / len(said) + (1 - EVEN) * said / said.sum()
    return weights


def _said(log_odds: Floats, hessians: Floats) -> float:
    """What an attribute says alone, as in `draw_weights`."""
    weight = np.maximum(hessians, LEAST_HESSIAN).sum(axis=1, keepdims=True)
    centred = log_odds - log_odds.mean(axis=1, keepdims=True)  # a shift of all classes says nothing
    mean = (weight * centred).sum(axis=0) / weight.sum()
    return float((weight * (centred - mean) ** 2).sum())
