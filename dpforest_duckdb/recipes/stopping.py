"""When a node stays a leaf: by released figures and public rules alone."""

from __future__ import annotations

import math

import numpy as np

from dpforest_duckdb.arrays import Mask
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.request import Level, Stop


def small_or_pure(minimum: int) -> Stop:
    """Noisy size below `minimum`, or noisily pure: Fletcher & Islam 2015, lines 15 and 16."""

    def stop(level: Level) -> Mask:
        assert level.noisy is not None, "stopping by size needs a noisy histogram"
        size = level.noisy.sum(axis=1)
        pure: Mask = (level.noisy >= size[:, None]).any(axis=1)
        small: Mask = size < minimum
        return pure | small

    return stop


def drowned(level: Level) -> Mask:
    """n / (t C) < √2 k / ε: a child's class counts would be less than their noise.

    Friedman & Schuster 2010, of the noisy size; t is the mean number of branches, ε that of a leaf,
    k the rows per privacy unit (1 in the paper).
    """
    assert level.noisy is not None, "stopping by size needs a noisy size"
    domain = level.request.domain
    least = _leaf_noise(level) * float(np.mean(domain.cells)) * len(domain.classes)
    below: Mask = level.noisy.sum(axis=1) < least
    return below


def unsupported(level: Level) -> Mask:
    """Estimated support of an average child not above θ = √2 k C / ε (Fletcher & Islam 2015b).

    k is the rows per privacy unit (1 in the paper).
    """
    domain = level.request.domain
    theta = _leaf_noise(level) * len(domain.classes)
    below: Mask = level.expected / float(np.mean(domain.cells)) <= theta
    return below


def _leaf_noise(level: Level) -> float:
    """√2 k / ε: about the standard deviation of a leaf's noisy count."""
    leaf = level.plan.query("leaf")
    assert leaf is not None, "the noise of leaves needs a leaf query"
    return math.sqrt(2) * noise_scale(min(leaf.by_depth), level.request.rows_per_unit)
