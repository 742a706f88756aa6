"""What a candidate split is worth: utilities of class counts, per branch.

Counts are `[..., branch, class]` and private, and so is what comes out: `[...]`. The integer
utilities hold ε in the private form; the floating-point Gini serves an as-published recipe only.

Sensitivities are per row. A row falls into one branch of every candidate, so a privacy unit of k
rows changes each utility by up to k times that, one row after the other, wherever the rows fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.errors import DpforestError

Counts = NDArray[np.int64]

MAX_ROWS = 3 * 10**9  # n² < 2^63


@dataclass(frozen=True)
class Utility:
    """An integer utility of a candidate split: larger is better.

    `sensitivity` bounds its change with one row; if `monotone`, one more row never changes one
    candidate upward and another downward, which saves a factor of 2 (McKenna & Sheldon 2020).
    """

    name: str
    function: Callable[[Counts], Counts]
    sensitivity: int
    monotone: bool


def gini(counts: Counts) -> Counts:
    """−Σ over branches of ⌊(n² − Σ n_c²) / n⌋: Gini impurity weighted by rows; 0 if empty.

    Sensitivity 2, monotone: with g = n − S/n and S = Σ n_c², a row of class c more changes g by
    1 + (S − n(2n_c + 1)) / (n(n + 1)), which is below 2 as S ≤ n², and not below 0 as S ≥ n_c² and
    (n − n_c)² ≥ 0. Rounding down keeps order, and integers less than 3 apart are at most 2 apart.
    Raises `DpforestError` from 3·10^9 rows in a branch.
    """
    n = counts.sum(axis=-1)
    if (n >= MAX_ROWS).any():
        raise DpforestError(
            "A node holds too many rows for exact Gini: train on a table of less than 3 billion."
        )
    impurity = (n * n - (counts * counts).sum(axis=-1)) // np.maximum(n, 1)
    total: Counts = -impurity.sum(axis=-1)
    return total


def max_count(counts: Counts) -> Counts:
    """Σ over branches of the largest class count: rows classified rightly by majority.

    Sensitivity 1, monotone: one row more adds 1 to one class of one branch.
    """
    total: Counts = counts.max(axis=-1).sum(axis=-1)
    return total


GINI = Utility("Gini", gini, sensitivity=2, monotone=True)
MAX_COUNT = Utility("max count", max_count, sensitivity=1, monotone=True)


def published_gini(counts: Counts) -> NDArray[np.float64]:
    """Fletcher & Islam 2015, (4): −Σ n_v/n · (1 − Σ (n_vc/n_v)²), 0 without rows. NOT private:
    floating point, of a sensitivity that rests on n.
    """
    n_v = counts.sum(axis=-1)
    shares = counts / np.maximum(n_v, 1)[..., None]
    impurity = n_v * (1 - (shares**2).sum(axis=-1))
    total: NDArray[np.float64] = -impurity.sum(axis=-1) / np.maximum(n_v.sum(axis=-1), 1)
    return total


def published_sensitivity(noisy_n: Counts) -> NDArray[np.float64]:
    """Fletcher & Islam 2015, Theorem 1, of the noisy size: 1 − (n/(n+1))² − (1/(n+1))².

    NOT a bound: noise can make it smaller than at the true size.
    """
    n = noisy_n.astype(np.float64)
    bound: NDArray[np.float64] = 1 - (n / (n + 1)) ** 2 - (1 / (n + 1)) ** 2
    return bound
