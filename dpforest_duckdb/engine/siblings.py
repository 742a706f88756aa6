"""Children that need no counting: they hold what their parents hold, less what their siblings do.

Which child of a split is spared rests on the split alone, which is released: the one that most
values lead to. A choice that rested on counts would show in the statements and in their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.tree import MULTIWAY, THRESHOLD

LEAST = 0.25  # part of a split's values: where less is spared, setting rows aside costs more


@dataclass(frozen=True)
class Spared:
    """The splits of a depth: node `parent[i]` has the children `first[i]` …, `child[i]` spared.

    The `arity[i]` children of a split are side by side. All of it is public.
    """

    parent: NDArray[np.int64]
    child: NDArray[np.int64]
    first: NDArray[np.int64]
    arity: NDArray[np.int64]

    def counted(self, first: int, nodes: int) -> list[int]:
        """The nodes first … first+nodes-1 without the spared ones."""
        counted: list[int] = np.setdiff1d(np.arange(first, first + nodes), self.child).tolist()
        return counted

    def fill(
        self, counts: Sequence[Integers], first: int, above: Sequence[Integers], oldest: int
    ) -> None:
        """Put the spared children into `counts[node - first, …]`, where their cells are zero.

        `above[node - oldest, …]` are the counts of the nodes that were split.
        """
        starts = np.cumsum(self.arity) - self.arity
        members = np.repeat(self.first - starts, self.arity) + np.arange(self.arity.sum())
        for table, parents in zip(counts, above, strict=True):
            siblings = np.add.reduceat(table[members - first], starts, axis=0)
            table[self.child - first] = parents[self.parent - oldest] - siblings


def spared(splits: Splits, cells: Sequence[int]) -> Spared | None:
    """The largest child of each split by its part of the values; None where it saves too little."""
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
