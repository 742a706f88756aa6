"""The gate that every sampler must pass: Pearson's χ² at α = 1e-6."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z = 4.753424  # the standard normal's 1 − 1e-6 quantile
LEAST = 5  # expected draws per cell


def critical(freedom: int) -> float:
    """χ² at 1 − 1e-6, by Wilson & Hilferty: 15% too high for one degree of freedom, soon exact."""
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + Z * spread**0.5) ** 3)


def fits(observed: ArrayLike, probability: ArrayLike) -> bool:
    """Whether draws per cell agree with the cells' probabilities; rare cells are pooled."""
    seen, expected = np.asarray(observed, float), np.asarray(probability, float)
    assert np.isclose(expected.sum(), 1)
    if (seen[expected == 0] > 0).any():
        return False
    order = np.argsort(expected)
    seen, expected = seen[order], expected[order] * seen.sum()
    # all cells below LEAST, and more if these are below it together
    rare = int(np.searchsorted(expected, LEAST))
    pooled = max(rare, int(np.searchsorted(expected.cumsum(), LEAST)) + 1)
    seen = np.concatenate([[seen[:pooled].sum()], seen[pooled:]])
    expected = np.concatenate([[expected[:pooled].sum()], expected[pooled:]])
    if len(seen) == 1:
        return True
    return bool(((seen - expected) ** 2 / expected).sum() <= critical(len(seen) - 1))


def fits_laplace(draws: NDArray[np.int64], scale: float) -> bool:
    """Whether draws agree with P(x) ∝ exp(−|x| / scale); what is past the last cell is pooled."""
    q = np.exp(-1 / scale)
    centre = (1 - q) / (1 + q)
    last = max(1, int(scale * np.log(max(1.0, len(draws) * centre / LEAST))))
    x = np.arange(-last, last + 1)
    tail = q ** (last + 1) / (1 + q)
    probability = np.concatenate([[tail], centre * q ** np.abs(x), [tail]])
    cells = np.clip(draws, -last - 1, last + 1) + last + 1
    return fits(np.bincount(cells, minlength=len(probability)), probability)


def fits_gaussian(draws: NDArray[np.int64], variance: float) -> bool:
    """Whether draws agree with rounded normal ones, in at most some fifty equal cells."""
    sd = variance**0.5
    width = max(1, int(sd / 6))
    last = int(8 * sd / width) + 2  # cells on either side of the middle one
    x = np.arange(-last * width - width // 2, last * width + (width + 1) // 2)
    below = [math.erfc(-each / math.sqrt(2 * variance)) for each in (*(x - 0.5), x[-1] + 0.5)]
    weight = np.diff(below)
    cell = (x + last * width + width // 2) // width
    probability = np.bincount(cell, weights=weight / weight.sum(), minlength=2 * last + 1)
    seen = np.clip((draws + last * width + width // 2) // width, 0, 2 * last)
    return fits(np.bincount(seen, minlength=len(probability)), probability)
