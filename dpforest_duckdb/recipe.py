"""A recipe: the pieces that a published system is put together from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.forest import Tree
from dpforest_duckdb.privacy.accountant import Plan
from dpforest_duckdb.splits.candidates import Ways
from dpforest_duckdb.splits.choose import Chooser

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_LEAVES = 200_000  # of one multiway tree, by its public domain: what memory and SQL can bear


@dataclass(frozen=True)
class Request:
    """What a run is asked to do; public, settled before any row is read.

    `epsilon` is nano-ε, `depth` the number of splits on the longest path, `rows_per_unit` the
    bound that scales every sensitivity.
    """

    domain: Domain
    epsilon: int
    trees: int
    depth: int
    rows_per_unit: int = 1


@dataclass(frozen=True)
class Recipe:
    """One system, rigorous or as published.

    `rows`: every tree sees all rows (budget divided by the trees) or a disjoint part of them.
    `plan` gives the queries: "rows" (a noisy class histogram of all rows, on which `adapt` bases
    the depth), "histogram" (at every node), "split" (at every inner node), "leaf" (at every leaf).
    `stop` says which nodes stay leaves, from their noisy histograms. `finish` turns a tree of noisy
    counts into votes. `depth` is counted as the paper does, which gives the root the number `root`:
    depth - root splits on the longest path. `flaws` say why a form is not private, `repair` what
    the rigorous form does instead.
    """

    name: str
    title: str
    year: int
    paper: str
    rows: Literal["all", "disjoint"]
    ways: Ways
    choose: Chooser
    trees: int
    depth: int
    plan: Callable[[Request], Plan]
    finish: Callable[[Tree, Request, Plan], Tree]
    stop: Callable[[Counts], Mask] | None = None
    adapt: Callable[[Counts, Request], int] | None = None
    distinct_roots: bool = False
    root: int = 0
    published: Recipe | None = None
    flaws: tuple[str, ...] = ()
    repair: str = ""

    def request(
        self,
        domain: Domain,
        epsilon: int,
        *,
        trees: int | None = None,
        depth: int | None = None,
        rows_per_unit: int = 1,
    ) -> Request:
        """Settle trees and depth by public rules. Raises `DpforestError` for what is impossible."""
        wanted = self.trees if trees is None else trees
        if self.distinct_roots and wanted > len(domain.attributes):
            raise DpforestError(
                f"Recipe {self.name} gives every tree another root attribute and the domain has "
                f"{len(domain.attributes)}: ask for at most that many --trees, or --recipe auto."
            )
        deep = (self.depth if depth is None else depth) - self.root
        if self.ways == "multiway":
            deep = min(deep, _affordable_depth(domain))
        return Request(domain, epsilon, wanted, deep, rows_per_unit)

    def times(self, request: Request) -> int:
        """How many trees ask the same rows."""
        return request.trees if self.rows == "all" else 1


def _affordable_depth(domain: Domain) -> int:
    """The deepest multiway tree that the widest attributes keep under MAX_LEAVES leaves."""
    leaves, depth = 1, 0
    for cells in sorted(domain.cells, reverse=True):
        leaves *= cells
        if leaves > MAX_LEAVES:
            break
        depth += 1
    return max(1, depth)
