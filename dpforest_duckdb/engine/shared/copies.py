"""Trees that all see all rows: until rows move, the counts of one tree are those of every tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers


@dataclass(frozen=True)
class Copies:
    """As many columns of nodes as `number`. Until rows are `routed`, only the first is counted,
    because every tree then has the same rows at its root.
    """

    number: int
    routed: bool

    @property
    def counted(self) -> int:
        """How many columns to count, from the first on."""
        return self.number if self.routed else 1

    def nodes(self, nodes: int) -> int:
        """How many of the nodes of all columns to count."""
        return nodes if self.routed else nodes // self.number

    def of_all(self, counts: Integers) -> Integers:
        """The counts `[node, …]` of all nodes, from those of the counted ones."""
        return counts if self.routed else np.repeat(counts, self.number, axis=0)
