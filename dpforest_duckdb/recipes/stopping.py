"""When a node stays a leaf, `[node]`: by released figures and public rules only."""

from __future__ import annotations

from dpforest_duckdb.arrays import Mask
from dpforest_duckdb.postprocess.pipeline import leaf_noise
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


def children_within_noise(level: Level) -> Mask:
    """n / (t C) < √2 k / ε: a child's class counts would be less than their noise.

    DiffP-ID3's rule. n is the noisy size, t the most values of a remaining attribute, ε the budget
    of a leaf, and k the rows per privacy unit (1 in the paper).
    """
    assert level.noisy is not None, "stopping by size needs a noisy size"
    least = leaf_noise(level.request, level.plan) * level.widest * len(level.request.domain.classes)
    below: Mask = level.noisy.sum(axis=1) < least
    return below


def unsupported(level: Level) -> Mask:
    """A node's estimated support is not above θ = √2 k C / ε (Fletcher & Islam 2015b, thesis
    §4.5.3).

    k is the rows per privacy unit (1 in the paper).
    """
    theta = leaf_noise(level.request, level.plan) * len(level.request.domain.classes)
    below: Mask = level.expected <= theta
    return below
