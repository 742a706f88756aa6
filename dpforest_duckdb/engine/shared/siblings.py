"""Children that are not counted: their counts are their parent's minus those of their siblings.

Which child is left uncounted depends only on the split, which is released: it is the child that
most values lead to. If the choice depended on counts, the statements and their times would reveal
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.tree import MULTIWAY, THRESHOLD

LEAST_SPARED = 0.25  # part of a split's values; below it, copying the rows to count costs more
NO_COUNTS: tuple[list[Integers], int] = ([np.zeros((0, 0, 0), np.int64)], 0)


@dataclass(frozen=True)
class Spared:
    """The splits of a depth: children `first[i]` … of node `parent[i]`; `child[i]` is not counted.

    The `arity[i]` children of a split are side by side. All of it is public.
    """

    parent: Integers
    child: Integers
    first: Integers
    arity: Integers

    def fill(
        self, counts: Sequence[Integers], first: int, above: Sequence[Integers], oldest: int
    ) -> None:
        """Fill the uncounted children into `counts[node - first, …]`, where their cells are zero.

        `above[node - oldest, …]` are the counts of the nodes that were split.
        """
        starts = np.cumsum(self.arity) - self.arity
        members = np.repeat(self.first - starts, self.arity) + np.arange(self.arity.sum())
        for table, parents in zip(counts, above, strict=True):
            siblings = np.add.reduceat(table[members - first], starts, axis=0)
            table[self.child - first] = parents[self.parent - oldest] - siblings


def spared(splits: Splits, cells: Sequence[int]) -> Spared | None:
    """The child of each split that most values lead to; None if leaving it out saves too little."""
    kind, cell = np.array(splits.kind), np.array(splits.cell)
    size = np.array(cells)[list(splits.attribute)]
    low = np.where(kind == THRESHOLD, cell + 1, 1) / size  # the first child's part
    binary = kind != MULTIWAY
    part = np.where(binary, np.maximum(low, 1 - low), low)
    if not len(kind) or part.mean() < LEAST_SPARED:
        return None
    first = np.array(splits.first)
    return Spared(
        parent=np.array(splits.node),
        child=first + (binary & (low < 0.5)),
        first=first,
        arity=np.where(binary, 2, size),
    )


class Siblings:
    """The counts of a depth, until the next depth is counted; and the children spared there."""

    def __init__(self, cells: Sequence[int]) -> None:
        self._cells = cells
        self._above, self._oldest = NO_COUNTS  # `_above[attribute][node - _oldest, …]`
        self._spared: Spared | None = None

    def follow(self, splits: Splits) -> None:
        """Note the splits of the depth; without its counts, all children must be counted."""
        newest = self._oldest + len(self._above[0])
        known = all(self._oldest <= node < newest for node in splits.node)
        self._spared = spared(splits, self._cells) if known else None

    def counted(self, first: int, nodes: int) -> Integers:
        """The nodes first … first+nodes-1 that must be counted."""
        every = np.arange(first, first + nodes)
        return every if self._spared is None else np.setdiff1d(every, self._spared.child)

    def fill(self, counts: list[Integers], first: int) -> None:
        """Fill spared children into `counts[attribute][node - first, …]`, and keep the counts."""
        if self._spared is not None:
            self._spared.fill(counts, first, self._above, self._oldest)
        self._above, self._oldest, self._spared = counts, first, None

    def forget(self) -> None:
        self._above, self._oldest = NO_COUNTS
