"""How much the strongest attribute alone says about the class.

An attribute classifies a row correctly if the row has the most frequent class among the rows with
its value. The strongest attribute does so for the most rows. If few rows are left, tables of a few
attributes are better than tables, or a sum, of many. The figure is the number of the rows that are
left: those that the strongest attribute classifies wrongly. One more row raises it by 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.splits.utilities import classified

LEAST, MOST = 8, 64  # cells of a numeric attribute: with more, chance classifies more rows


def coarse(domain: Domain) -> Domain:
    """The domain in the cells that are counted for the figure."""
    return domain.recut(coarse_bins(domain))


def coarse_bins(domain: Domain) -> int:
    """The cells of a numeric attribute that are counted: two for each class, within limits.

    In fewer cells than classes, an attribute that equals the class would not classify all rows.
    """
    return min(max(2 * len(domain.classes), LEAST), MOST)


def misclassified(tables: Sequence[Integers], cost: int, k: int, noise: CountNoise) -> int:
    """The noisy number of rows that the strongest attribute classifies wrongly.

    `tables[attribute][cell, class]` are private, in the cells of `coarse`; `cost` is nano-ε, k the
    rows per unit.
    """
    fewest = np.array([min(int(table.sum()) - classified(table) for table in tables)])
    return int(noise.laplace(fewest, cost, k)[0])
