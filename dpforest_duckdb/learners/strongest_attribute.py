"""Whether one attribute alone classifies most rows correctly.

If so, tables of a few attributes are often better than a sum over all of them. The figure is the
rows of the most frequent class at each value of an attribute, added up, for the attribute where
these are most. One more row raises it by 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.splits.choose import classified

LEAST, MOST = 8, 64  # cells of a numeric attribute: with more, chance classifies more rows


def coarse(domain: Domain) -> Domain:
    """The domain in the cells that are counted for the figure: two for each class, within limits.

    In fewer cells than classes, an attribute that equals the class would not classify all rows.
    """
    cells = min(max(2 * len(domain.classes), LEAST), MOST)
    return replace(domain, attributes=tuple(each.recut(cells) for each in domain.attributes))


def one_suffices(
    tables: Sequence[Integers], rows: int, cost: int, k: int, noise: CountNoise
) -> bool:
    """Whether an attribute classifies more than half of a noisy number of `rows` correctly.

    `tables[attribute][cell, class]` are private, in the cells of `coarse`; `cost` is nano-ε, k the
    rows per unit.
    """
    strongest = np.array([max(classified(table) for table in tables)])
    return bool(2 * noise.laplace(strongest, cost, k)[0] > rows)
