"""When a node stays a leaf: by released figures and public rules alone."""

from __future__ import annotations

import math

import numpy as np

from dpforest_duckdb.arrays import Mask
from dpforest_duckdb.privacy.amounts import NANO
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
    """n / (t C) < √2 / ε: a child's class counts would be less than their noise.

    Friedman & Schuster 2010, of the noisy size; t is the mean number of branches, ε that of a leaf.
    """
    assert level.noisy is not None, "stopping by size needs a noisy size"
    domain, leaf = level.request.domain, level.plan.query("leaf")
    assert leaf is not None
    branches = float(np.mean(domain.cells))
    least = math.sqrt(2) * NANO / min(leaf.by_depth) * branches * len(domain.classes)
    below: Mask = level.noisy.sum(axis=1) < least
    return below


def unsupported(level: Level) -> Mask:
    """Estimated support of an average child not above θ = √2 C / ε (Fletcher & Islam 2015b)."""
    domain, leaf = level.request.domain, level.plan.query("leaf")
    assert leaf is not None
    theta = math.sqrt(2) * len(domain.classes) * NANO / min(leaf.by_depth)
    below: Mask = level.expected / float(np.mean(domain.cells)) <= theta
    return below
