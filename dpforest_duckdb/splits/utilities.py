"""The utility of a candidate split: functions of class counts per branch.

Counts are `[..., branch, class]` and private, and so are the results `[...]`. Private forms use the
integer utilities. The floating-point Gini is only for recipes as published.

Sensitivities are per row. A row falls into one branch of every candidate, so a privacy unit of k
rows changes each utility by at most k times as much: add its rows one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats, Integers

MAX_ROWS = 3 * 10**9  # up to which n² < 2^63
UTILITY_PARTS = 2**20  # whole parts of a bit, or of the range of a utility
LEAST_SPLIT = 2**-10  # bits of SI in a gain ratio
PARTS = 2**10  # parts of a row, for utilities that a paper does not round


@dataclass(frozen=True)
class Utility:
    """An integer utility of a candidate split: larger is better.

    `sensitivity` bounds its change with one row. If it is `monotone`, one more row never raises one
    candidate and lowers another, which saves a factor of 2 (McKenna & Sheldon 2020).
    """

    name: str
    function: Callable[[Integers], Integers]
    sensitivity: int
    monotone: bool


def gini(counts: Integers) -> Integers:
    """−Σ over branches of ⌊(n² − Σ n_c²) / n⌋: Gini impurity weighted by rows; 0 if empty.

    Sensitivity 2, monotone: with g = n − S/n and S = Σ n_c², one more row of class c changes g by 1
    + (S − n(2n_c + 1)) / (n(n + 1)). This is below 2 because S ≤ n², and at least 0 because S ≥
    n_c² and (n − n_c)² ≥ 0. Rounding down keeps the order, and integers less than 3 apart are at
    most 2 apart.
    """
    n = np.einsum("...c->...", counts)  # for few classes and branches much faster than sum
    counts, n = _without_overflow(counts, n)
    impurity = (n * n - np.einsum("...c,...c->...", counts, counts)) // np.maximum(n, 1)
    total: Integers = -np.einsum("...b->...", impurity).astype(np.int64)
    return total


def _without_overflow(counts: Integers, n: Integers) -> tuple[Any, Any]:
    """Counts and their sums as they are, or as Python's integers if n² exceeds 64 bits.

    So a utility is the same function of counts of any size, and its sensitivity is proved for all
    of them. No number of rows makes a run fail.
    """
    if n.max(initial=0) < MAX_ROWS:
        return counts, n
    return counts.astype(object), np.asarray(n).astype(object)


def max_count(counts: Integers) -> Integers:
    """Σ over branches of the largest class count: rows classified correctly by majority.

    Sensitivity 1, monotone: one more row adds 1 to one class of one branch.
    """
    total: Integers = np.einsum("...b->...", _largest(counts))
    return total


def _largest(counts: Integers) -> Integers:
    """The largest class count of each `[..., branch]`; faster than max over a short axis."""
    return reduce(np.maximum, np.moveaxis(counts, -1, 0))


def classified(table: Integers) -> int:
    """The rows of the most frequent class at each value, of private `table[value, …, class]`.

    One more row raises one count, so this rises by 0 or 1: sensitivity 1 per row, monotone. If the
    counts of a class are multiplied by its weight, it rises by that weight at most.
    """
    return int(table.max(axis=-1).sum())


def balance(counts: Integers) -> Integers:
    """−||left| − |right|| of a binary split: largest at the median (thesis (5.1), (5.2)).

    Sensitivity 1: one more row changes one side by one. Not monotone: it may move either way.
    """
    sizes = np.einsum("...c->...", counts)
    even: Integers = -abs(sizes[..., 0] - sizes[..., 1])
    return even


def weighted_max(counts: Integers) -> Integers:
    """F_Max (4.11), read as Σ_v ⌊M_v / n_v · M_v⌋ over branches v of n_v rows.

    M_v is the largest class count of a branch, weighted by the share that this class has in it.

    Sensitivity 1, not monotone. One more row changes one branch. If it adds to M, M²/n rises by
    (n (2M + 1) − M²) / (n (n + 1)), which is at most 1 because (n − M)² ≥ 0. Otherwise it falls by
    M² / (n (n + 1)), which is less than 1 because M ≤ n. Numbers at most 1 apart are at most 1
    apart when rounded down.
    """
    counts, n = _without_overflow(counts, counts.sum(axis=-1))
    weighted = counts.max(axis=-1) ** 2 // np.maximum(n, 1)
    total: Integers = np.asarray(weighted.sum(axis=-1)).astype(np.int64)
    return total


def f_max(counts: Integers) -> Integers:
    """F_Max (4.11), read as Σ_v M_v / n_v · M_v, in parts of 1/PARTS of a row."""
    largest = counts.max(axis=-1)
    total = (largest / np.maximum(counts.sum(axis=-1), 1) * largest).sum(axis=-1)
    parts: Integers = np.rint(total * PARTS).astype(np.int64)
    return parts


def information_gain_of(counts: Integers) -> Floats:
    """H(class) − Σ_v n_v/n H(class | v), in bits, of true counts, private."""
    n = np.einsum("...bc->...", counts)
    within = _spread(np.einsum("...bc->...c", counts), n)
    for branch in range(counts.shape[-2]):
        inside = counts[..., branch, :]
        within -= _spread(inside, np.einsum("...c->...", inside))
    gain: Floats = within / np.maximum(n, 1)
    return gain


def _spread(parts: Integers, n: Integers) -> Floats:
    """n times the entropy, in bits, of `parts[..., part]` of n: n log2 n − Σ n_i log2 n_i."""
    bits = _n_log_n(n)
    for part in range(parts.shape[-1]):  # sums over short axes are slow
        bits -= _n_log_n(parts[..., part])
    return bits


def _n_log_n(counts: Integers) -> Floats:
    bits: Floats = counts.astype(np.float64) * np.log2(np.maximum(counts, 1))
    return bits


def within_branches(cells: NDArray[Any], sizes: NDArray[Any]) -> Floats:
    """−Σ_v Σ_c n_vc log2(n_vc / n_v), in bits: n times (4.1) of the thesis; the smallest is best.

    Of `cells[..., branch, class]` and `sizes[..., branch]`. Both may be noisy: negative counts are
    replaced by 0, and shares above 1 by 1.
    """
    cells = np.clip(cells, 0, None).astype(np.float64)
    shares = np.minimum(cells / np.maximum(sizes, 1)[..., None], 1.0)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: Floats = -(cells * logs).sum(axis=(-2, -1))
    return bits


def gain_and_ratio(counts: Integers) -> Floats:
    """½ IG + ½ IG / max(SI, LEAST_SPLIT), in bits: Hou et al. 2019, thesis (4.9).

    SI is the entropy of the branch sizes. IG is never above SI, so the ratio is at most 1 and the
    sum at most log2 C. LEAST_SPLIT defines 0 / 0.
    """
    sizes = np.einsum("...c->...", counts)
    n = np.einsum("...b->...", sizes)
    ratio = 0.5 + 0.5 / np.maximum(_spread(sizes, n) / np.maximum(n, 1), LEAST_SPLIT)
    mixed: Floats = information_gain_of(counts) * ratio
    return mixed


def normalised_gini(counts: Integers) -> Integers:
    """(4) of Fletcher & Islam 2015 in whole parts of 2^-20, rounded: −Σ n_v/n · Gini of branch v.

    Sensitivity ½ before rounding: with G = g/n and g growing by δ, 0 ≤ δ < 2, one more row changes
    G by (δ − G) / (n + 1), which is ½ at n = 1 and less elsewhere. Not monotone.
    """
    parts: Integers = np.rint(published_gini(counts) * UTILITY_PARTS).astype(np.int64)
    return parts


def information_gain(counts: Integers) -> Integers:
    """Information gain in whole parts of 2^-20 bits, rounded.

    Sensitivity 1 bit before and after rounding, whatever the number of classes. Let the gain be I
    for n rows and I' with one more, h the binary entropy, and Z whether a row is the new one. Gain
    is the mutual information of branch and class, so by the chain rule n/(n+1) · I − h(1/(n+1)) ≤
    I' ≤ n/(n+1) · I + h(1/(n+1)). With I ≤ log2 n, the change is less than 1 from n = 6 on; up to
    there it is 1 at n = 1 and less elsewhere, by trying all tables. Not monotone.
    """
    bits: Integers = np.rint(information_gain_of(counts) * UTILITY_PARTS).astype(np.int64)
    return bits


def of_range(name: str, function: Callable[[Integers], Floats]) -> Utility:
    """A utility in bits, at most log2 C, as whole numbers from 0 to 2^20.

    The sensitivity is the whole range: a trivial bound that rounding cannot break. Not monotone.
    """

    def steps(counts: Integers) -> Integers:
        part = function(counts) / np.log2(max(counts.shape[-1], 2))
        whole: Integers = np.rint(np.clip(part, 0.0, 1.0) * UTILITY_PARTS).astype(np.int64)
        return whole

    return Utility(name, steps, sensitivity=UTILITY_PARTS, monotone=False)


GINI = Utility("Gini", gini, sensitivity=2, monotone=True)
# N MSE is 2 Gini of labels -1 and 1, and ½ Gini of labels 0 and 1. With these sensitivities
# exp(ε u / 2Δ) is exp(−ε N MSE / 8), which is (4.16) and (5.3) of the thesis at P = 1
MSE_OF_SIGNED = replace(GINI, name="N MSE of labels -1 and 1", sensitivity=2, monotone=False)
MSE_OF_ZERO_ONE = replace(GINI, name="N MSE of labels 0 and 1", sensitivity=8, monotone=False)
MAX_COUNT = Utility("max count", max_count, sensitivity=1, monotone=True)
BALANCE = Utility("balance", balance, sensitivity=1, monotone=False)
WEIGHTED_MAX = Utility("weighted max", weighted_max, sensitivity=1, monotone=False)
F_MAX = Utility("F_Max", f_max, sensitivity=PARTS, monotone=False)
NORMALISED_GINI = Utility(
    "normalised Gini", normalised_gini, UTILITY_PARTS // 2 + 1, monotone=False
)
INFORMATION_GAIN = Utility("information gain", information_gain, UTILITY_PARTS, monotone=False)
GAIN_OF_RANGE = of_range("information gain", information_gain_of)  # Δ = log2 C, as in papers
GAIN_AND_RATIO = of_range("gain and ratio", gain_and_ratio)


def with_factor_2(utility: Utility) -> Utility:
    """The same utility with the general form of the exponential mechanism, ε·u / 2Δ, as in most
    papers.
    """
    return replace(utility, monotone=False)


def published_gini(counts: Integers) -> Floats:
    """Fletcher & Islam 2015, (4): −Σ n_v/n · (1 − Σ (n_vc/n_v)²), 0 without rows.

    NOT private: floating point, with a sensitivity that depends on n.
    """
    n_v = np.einsum("...c->...", counts)
    shares = counts / np.maximum(n_v, 1)[..., None]
    impurity = n_v * (1 - np.einsum("...c,...c->...", shares, shares))
    n = np.maximum(np.einsum("...v->...", n_v), 1)
    total: Floats = -np.einsum("...v->...", impurity) / n
    return total


def published_sensitivity(noisy: Integers | None) -> Floats:
    """Fletcher & Islam 2015, Theorem 1, of the noisy size: 1 − (n/(n+1))² − (1/(n+1))².

    NOT a bound: noise can make it smaller than at the true size.
    """
    assert noisy is not None, "the published sensitivity needs noisy histograms"
    n = np.maximum(noisy.sum(axis=1), 1).astype(np.float64)
    bound: Floats = 1 - (n / (n + 1)) ** 2 - (1 / (n + 1)) ** 2
    return bound


def constant(sensitivity: float) -> Callable[[Integers | None], Floats]:
    """A sensitivity that is the same everywhere."""
    return lambda noisy: np.array([sensitivity])
