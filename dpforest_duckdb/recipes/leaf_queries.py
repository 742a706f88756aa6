"""The query for a leaf: its class counts, or only its label."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.noise import CountNoise, laplace_deviation, noise_scale
from dpforest_duckdb.privacy.plan import LAPLACE, Answer, drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP, Exponents, exponents


@dataclass(frozen=True)
class LeafRelease:
    """How leaves' private `counts[leaf, class]` are released for ε (nano) and k rows per unit.

    `ask` gives an array of the same shape: noisy counts, or a single 1 per leaf if `gives` is
    "label". `answer` is what the plan says of it.
    """

    answer: Answer
    ask: Callable[[Integers, int, int, CountNoise, Bits], Integers]
    gives: Literal["counts", "label"] = "counts"

    def deviation(self, epsilon: int, k: int) -> float:
        """The standard deviation of the noise in a count; NaN for labels, which have none."""
        return laplace_deviation(epsilon, k) if self.gives == "counts" else math.nan


def _counts(counts: Integers, epsilon: int, k: int, noise: CountNoise, bits: Bits) -> Integers:
    """Every class count: a unit changes them by at most k in L1."""
    return noise.laplace(counts, epsilon, k)


def _label(counts: Integers, epsilon: int, k: int, noise: CountNoise, bits: Bits) -> Integers:
    """The most frequent class by permute-and-flip: counts are monotone with sensitivity k."""
    every = np.ones(counts.shape, dtype=np.bool_)
    exponent = exponents(counts, every, epsilon, k, monotone=True)
    return _one_hot(PERMUTE_AND_FLIP.draw(exponent, every, bits), counts.shape[1])


def _smooth_label(
    counts: Integers, epsilon: int, k: int, noise: CountNoise, bits: Bits
) -> Integers:
    """The most frequent class by the exponential mechanism with smooth sensitivity: NOT private.

    Fletcher & Islam 2017: utility 1 for the most frequent class, or for all that are equally
    frequent, and 0 for the others; sensitivity S* = e^(-jε), where j is the lead of the most
    frequent class; exponent ε / (2 S*). So if a leaf has no rows, all classes are
    equally likely. With k rows per privacy unit ε is divided by k (1 in the paper).
    """
    every = np.ones(counts.shape, dtype=np.bool_)
    ordered = np.sort(counts, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    rate = float(1 / noise_scale(epsilon, k))
    of_losers = rate / 2 * np.exp(np.minimum(lead * rate, 40.0))
    exponent = Exponents.rounded(np.where(counts < ordered[:, -1:], of_losers[:, None], 0))
    return _one_hot(EXPONENTIAL.draw(exponent, every, bits), counts.shape[1])


def _one_hot(label: Integers, classes: int) -> Integers:
    """`[leaf, class]` with a single 1, at each `label[leaf]`."""
    return np.eye(classes, dtype=np.int64)[label]


LEAF_COUNTS = LeafRelease(LAPLACE, _counts)
LABEL = LeafRelease(drawn(PERMUTE_AND_FLIP, "class counts"), _label, "label")
SMOOTH_FLAWS = (
    "The exponential mechanism is not private with smooth sensitivity.",
    "One row changes the scale of the noise itself, and reveals more, without a limit, the farther "
    "the most frequent class of a leaf is ahead.",
)
SMOOTH_LABEL = LeafRelease(
    Answer(f"{EXPONENTIAL.name}, smooth sensitivity"), _smooth_label, "label"
)
