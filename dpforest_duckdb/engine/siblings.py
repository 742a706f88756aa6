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

LEAST = 0.25  # part of a split's values; below it, copying the rows to count costs more


@dataclass(frozen=True)
class Spared:
    """The splits of a depth: children `first[i]` … of node `parent[i]`; `child[i]` is not counted.

    The `arity[i]` children of a split are side by side. All of it is public.
    """

    parent: Integers
    child: Integers
    first: Integers
    arity: Integers

    def counted(self, first: int, nodes: int) -> list[int]:
        """The nodes first … first+nodes-1 that are counted."""
        counted: list[int] = np.setdiff1d(np.arange(first, first + nodes), self.child).tolist()
        return counted

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
    if not len(kind) or part.mean() < LEAST:
        return None
    first = np.array(splits.first)
    return Spared(
        parent=np.array(splits.node),
        child=first + (binary & (low < 0.5)),
        first=first,
        arity=np.where(binary, 2, size),
    )
