"""Weights of attributes in TpDPRF (Liu et al. 2022, thesis 4.3.4); the recipe is in `tpdprf.py`.

They are those of the true rows, before trees are grown. NOT private: no budget is spent on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.request import Grown, Learner, TrainingContext
from dpforest_duckdb.splits.choose import Choice, Chooser, Drawn

LEAST = 0.01  # of the largest symmetrical uncertainty: attributes below it are not relevant


def entropy(counts: Integers) -> float:
    """H in bits of the shares of counts, whatever their shape (3.2)."""
    shares = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(shares * np.log2(shares)).sum())


def mutual_information(counts: Integers) -> float:
    """I(X …; Y) of `counts[value, …, class]` (4.23), as H(X …) + H(Y) − H(X …, Y)."""
    inputs, classes = counts.sum(axis=-1), counts.sum(axis=tuple(range(counts.ndim - 1)))
    return entropy(inputs) + entropy(classes) - entropy(counts)


def symmetrical_uncertainty(counts: Integers) -> float:
    """2 I(X; Y) / (H(X) + H(Y)) of `counts[value, class]` (4.24); 0 if both entropies are 0."""
    both = entropy(counts.sum(axis=1)) + entropy(counts.sum(axis=0))
    return 2 * mutual_information(counts) / both if both else 0.0


def interaction(counts: Integers) -> float:
    """Normalised interaction gain (4.26) of `counts[value, value, class]`; ½ means no gain.

    ½ + IG / (2 (H(X) + H(Y))), IG = I(X, Y; Z) − I(X; Z) − I(Y; Z) (4.25).
    """
    one, other = counts.sum(axis=1), counts.sum(axis=0)
    both = entropy(one.sum(axis=1)) + entropy(other.sum(axis=1))
    gain = mutual_information(counts) - mutual_information(one) - mutual_information(other)
    return 0.5 + gain / (2 * both) if both else 0.5


def weights_of(pairs: Mapping[tuple[int, int], Integers], attributes: int) -> Floats:
    """The weight of each attribute, from `counts[value, value, class]` of every pair.

    Attributes with a symmetrical uncertainty below LEAST have weight 0. The paper does not define
    IG-RFE, so the weight of each other attribute is its symmetrical uncertainty times its mean
    interaction with the rest.
    """
    uncertainty, mean = np.zeros(attributes), np.full(attributes, 0.5)
    for (one, other), counts in pairs.items():
        uncertainty[one] = symmetrical_uncertainty(counts.sum(axis=1))
        uncertainty[other] = symmetrical_uncertainty(counts.sum(axis=0))
    relevant_ones = uncertainty >= LEAST * uncertainty.max(initial=0.0)
    met: list[list[float]] = [[] for _ in range(attributes)]
    for pair, counts in pairs.items():
        if relevant_ones[list(pair)].all():
            gain = interaction(counts)
            for attribute in pair:
                met[attribute].append(gain)
    for attribute, gains in enumerate(met):
        if gains:
            mean[attribute] = np.mean(gains)
    weights: Floats = np.where(relevant_ones, uncertainty * mean, 0.0)
    return weights


def relevant(learner: Learner) -> Learner:
    """The same learner, with the weights of the attributes in its request."""

    def grow(rows: CodedRows, context: TrainingContext) -> Grown:
        request = context.request
        cells = request.domain.cells
        attributes = len(cells)
        pairs = {
            (one, other): table
            for one in range(attributes - 1)
            for other, table in enumerate(rows.count_pairs(one, range(cells[one])))
            if other > one
        }
        weights = weights_of(pairs, attributes)
        return learner.grow(
            rows, replace(context, request=replace(request, weights=tuple(weights.tolist())))
        )

    return replace(learner, grow=grow)


def among_the_relevant(chooser: Chooser) -> Chooser:
    """The chooser, restricted to the ⌊√m⌋ remaining attributes of largest weight.

    NOT private if the weights are those of the true rows.
    """

    def choose(choice: Choice) -> Drawn:
        left = choice.attributes_left()
        weights = np.broadcast_to(np.array(choice.weights or [1.0]), left.shape)
        rank = np.where(left, -weights, np.inf).argsort(axis=1, kind="stable").argsort(axis=1)
        kept = left & (rank < max(1, math.isqrt(left.shape[1])))
        return chooser(
            replace(choice, allowed=choice.allowed & kept[:, choice.candidates.attribute])
        )

    return choose
