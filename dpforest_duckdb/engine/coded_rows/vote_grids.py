"""Adds up the votes of trees of few attributes, so that rows look up fewer votes.

A tree is a grid if all nodes of a depth split by all values of the same attribute: the values of
these attributes tell its votes. The sum of two grids is a grid of the attributes of both. All votes
are released figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers

MAX_MORE_CELLS = 256  # of a sum than of its parts; writing more votes takes longer than it saves


@dataclass(frozen=True)
class VoteGrid:
    """Votes for several scores, with an axis for each attribute, and one for the scores."""

    attributes: tuple[int, ...]
    votes: Integers

    def plus(self, other: VoteGrid) -> VoteGrid | None:
        """The sum of both; None if it has more cells than both together and MAX_MORE_CELLS."""
        sizes = dict(
            zip(self.attributes + other.attributes, self._sizes + other._sizes, strict=True)
        )
        parts = math.prod(self._sizes) + math.prod(other._sizes)
        if math.prod(sizes.values()) > parts + MAX_MORE_CELLS:
            return None
        attributes = tuple(sizes)
        return VoteGrid(attributes, self._along(attributes) + other._along(attributes))

    @property
    def by_cell(self) -> Integers:
        """The votes `[cell, score]`; the values of the last attribute vary fastest."""
        return self.votes.reshape(-1, self.votes.shape[-1])

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.votes.shape[:-1]

    def _along(self, attributes: tuple[int, ...]) -> Integers:
        """The votes with an axis for each of more attributes, of length 1 if it is a new one."""
        order = [self.attributes.index(a) for a in attributes if a in self.attributes]
        new = tuple(axis for axis, a in enumerate(attributes) if a not in self.attributes)
        return np.expand_dims(self.votes.transpose(*order, -1), new)


def added(grids: Iterable[VoteGrid]) -> list[VoteGrid]:
    """Few grids with the same sum: each one is added to the first that it fits."""
    found: list[VoteGrid] = []
    for grid in grids:
        for number, other in enumerate(found):
            if (both := other.plus(grid)) is not None:
                found[number] = both
                break
        else:
            found.append(grid)
    return found
