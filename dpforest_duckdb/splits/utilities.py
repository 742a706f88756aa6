"""How good a split is: integer utilities of class counts per branch, pure functions.

Adding a row moves each utility below in one direction only and by at most its sensitivity, whatever
the node's size; that is what makes them monotone. With k rows per privacy unit both hold for k
times the sensitivity, one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.errors import DpforestError

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Utility:
    """A utility with its sensitivity per row and whether it is monotone."""

    name: str
    function: Callable[[Counts], Counts]
    sensitivity: int
    monotone: bool


def gini(counts: Counts) -> Counts:
    """Count-weighted Gini, −Σ_branch ⌊(n² − Σ_c n_c²) / n⌋, of `counts[..., branch, class]`.

    Sensitivity 2 and monotone: n − Σ n_c²/n rises by less than 2 when a row is added (by 2 − … at a
    pure branch that gets its first stranger) and never falls; the floor keeps both. Empty branches
    give 0. Raises `DpforestError` where n² would not fit into 64 bits.
    """
    size = counts.sum(axis=-1)
    if int(size.max(initial=0)) >= 3_000_000_000:
        raise DpforestError("The table has too many rows for 64-bit Gini: use a utility by count.")
    mixed = (size * size - (counts * counts).sum(axis=-1)) // np.maximum(size, 1)
    return -mixed.sum(axis=-1)


def max_count(counts: Counts) -> Counts:
    """Σ_branch max_c n_c of `counts[..., branch, class]`: rows that majority gets right.

    Sensitivity 1 and monotone.
    """
    return counts.max(axis=-1).sum(axis=-1)


def published_gini(counts: Counts) -> NDArray[np.float64]:
    """Fletcher & Islam 2015, (4): −Σ_v n_v/n (1 − Σ_c (n_vc/n_v)²); for the published form only."""
    rows = counts.astype(np.float64)
    size = rows.sum(axis=-1)
    mixed = size - (rows**2).sum(axis=-1) / np.maximum(size, 1)
    return -mixed.sum(axis=-1) / np.maximum(size.sum(axis=-1), 1)


def published_sensitivity(noisy: Counts) -> NDArray[np.float64]:
    """Theorem 1 there, (11), of a noisy node size; understated wherever noise made it large."""
    n = noisy.astype(np.float64)
    return 1 - (n / (n + 1)) ** 2 - (1 / (n + 1)) ** 2


GINI = Utility("count-weighted Gini", gini, 2, monotone=True)
MAX_COUNT = Utility("max operator", max_count, 1, monotone=True)
