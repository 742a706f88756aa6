"""A recipe: the pieces that a published system is put together from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import Sample
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.forest import Link, Tree, Voting
from dpforest_duckdb.leaves import COUNTS, Leaf
from dpforest_duckdb.privacy.accountant import Plan
from dpforest_duckdb.privacy.zcdp import rho_of
from dpforest_duckdb.splits.candidates import Ways, by_cell, leaves_within
from dpforest_duckdb.splits.choose import Chooser

BOOTSTRAP = "A row drawn several times into a bootstrap sample changes its counts by more than one."
LOSS = "One noisy count may tell of it up to e^ε - 1 instead of ε."
ALL_ROWS = "Every tree sees all rows once."

Counts = NDArray[np.int64]
Array = NDArray[np.int64]
Mask = NDArray[np.bool_]

OURS = "It is this package's own."  # the only form of a recipe that no paper published

MAX_LEAVES = 60_000  # of one tree, by its public domain: what memory and SQL can bear
MAX_ALL_LEAVES = 60_000  # of all trees


@dataclass(frozen=True)
class Request:
    """What a run is asked to do; public, settled before any row is read.

    `epsilon` is nano-ε, `depth` the number of splits on the longest path, `rows_per_unit` the
    bound that scales every sensitivity, `rows` a number of rows that is released or public, 0
    where there is none, `histogram` its classes. `weights` are those with which attributes are
    drawn at random, released or public; none where all weigh the same. `delta` is atto-δ; a recipe
    that adds up costs in ρ has `rho` of them to spend.
    """

    domain: Domain
    epsilon: int
    trees: int
    depth: int
    rows_per_unit: int = 1
    rows: int = 0
    weights: tuple[float, ...] = ()
    histogram: tuple[int, ...] = ()
    delta: int = 0

    @property
    def rho(self) -> int:
        """What ε and δ pay for, in atto-ρ; 0 under pure ε."""
        return rho_of(self.epsilon, self.delta)


@dataclass(frozen=True)
class Level:
    """What is released of the open nodes of a depth, for the decision to stop.

    `noisy[node, class]` is the histogram that the recipe asks of every node, or `[node, 1]` its
    size; `expected[node]` the rows that it holds if every split sends equal parts to its branches.
    """

    noisy: Counts | None
    expected: NDArray[np.float64]
    request: Request
    plan: Plan


def half_the_attributes(domain: Domain) -> int:
    """m/2 splits on a path: a public rule of several papers."""
    return max(1, len(domain.attributes) // 2)


@dataclass(frozen=True)
class Second:
    """A second phase: trees that mind the rows which those of the first phase get wrong.

    `share` of the trees, and of the budget, is the first phase's. A row that half of its trees or
    more get wrong counts `heavy` times in the second, so every sensitivity is `heavy` times as
    large there; in a bootstrap sample it is drawn in proportion to the trees that get it wrong.
    `weigh` gives the weights, by released figures of the first trees, with which attributes are
    drawn.
    """

    share: Fraction
    heavy: int
    weigh: Callable[[Sequence[Tree], Sequence[int]], tuple[float, ...]]


Stop = Callable[[Level], Mask]


def whole(joint: Counts) -> Counts:
    """The histogram itself: a row is in one cell."""
    return joint


@dataclass(frozen=True)
class Scores:
    """Integer scores of a row, each the sum of the votes of the leaves that it is in; released.

    `votes[score][tree][node]`; `cuts` ascend and part every score into len(cuts) + 1 bins. What is
    asked of the rows is `asked` of the joint histogram `[bin, …, class]`, of sensitivity 1.
    """

    votes: Sequence[Sequence[Array]]
    cuts: Sequence[int]
    asked: Callable[[Counts], Counts] = whole


@dataclass(frozen=True)
class Grown:
    """What the loop releases: trees of noisy counts, and how scores and classes go together.

    `joint` is what the recipe's scores ask, with noise; None where none is asked.
    """

    trees: Sequence[Tree]
    joint: Counts | None = None


Progress = Callable[[str], None]
ScoreRule = Callable[[Sequence[Tree], Request, Plan], Scores]
Finish = Callable[[Grown, Request, Plan], list[Tree]]


@dataclass(frozen=True)
class Recipe:
    """One system, rigorous or as published.

    `rows`: every tree sees all rows (budget divided by the trees), a disjoint part of them, or a
    bootstrap sample (never private). `ways` and `choose` say how a node is split. `plan` gives the
    queries: "rows" (a noisy class histogram of all rows, on which `adapt` bases trees, depth and
    bins), "histogram" or "size" (at every node), "split" (at every inner node), "leaf" (what `leaf`
    asks of every leaf; tree by tree, where the query has a share for each), "scores" (what `scores`
    asks of its sums and the class), "bins" (cuts at private medians), "sweep" and "forest" (see
    `boosting`) or "tables" (see `joint`), which take the place of the level loop. `heir` is the
    recipe that goes on instead, with its own trees and depth, once the noisy rows are known; both
    ask them for the same ε.
    `stop` says which nodes stay leaves. `finish` turns what was released into votes, `voting` how
    trees vote together, `link` how votes become probabilities. `second` is a second phase, if there
    is one. `taxonomies`: groups of categories are split before the categories in them. `trees` and
    `depth` are numbers or public rules, the most there may be where `adapt` settles them; `depth`
    is counted as the paper does, which gives the root the number `root`: depth - root splits on the
    longest path. `flaws` say why a form is not private, `repair` what the rigorous form does
    instead, `only` why there is but one. `variants` are pieces that NAME:VARIANT puts in other
    pieces' places; `refused` says why a variant is not to be had. `instead` names the nearest
    recipe for those who ask what this one cannot do.
    """

    name: str
    title: str
    year: int
    paper: str
    rows: Sample
    ways: Ways
    choose: Chooser
    trees: int | Callable[[Domain], int]
    depth: int | Callable[[Domain], int]
    plan: Callable[[Request], Plan]
    finish: Finish
    stop: Stop | None = None
    leaf: Leaf = COUNTS
    adapt: Callable[[Counts, Request], Request] | None = None
    heir: Callable[[Request], Recipe | None] | None = None
    second: Second | None = None
    voting: Voting = "sum"
    distinct_roots: bool = False
    taxonomies: bool = False
    root: int = 0
    scores: ScoreRule | None = None
    link: Link = "shares"
    published: Recipe | None = None
    flaws: tuple[str, ...] = ()
    repair: str = ""
    only: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    instead: str = "dprfmaxtree"

    def request(
        self,
        domain: Domain,
        epsilon: int,
        *,
        trees: int | None = None,
        depth: int | None = None,
        rows_per_unit: int = 1,
        rows: int = 0,
        delta: int = 0,
    ) -> Request:
        """Settle trees and depth by public rules. Raises `DpforestError` for what is impossible."""
        if self.taxonomies:
            domain = domain.generalised()
        own_trees = self.trees if isinstance(self.trees, int) else self.trees(domain)
        own_depth = self.depth if isinstance(self.depth, int) else self.depth(domain)
        wanted = own_trees if trees is None else trees
        if self.distinct_roots and self.adapt is not None:  # adapts to the rows: takes a maximum
            wanted = min(wanted, len(domain.attributes))
        if self.distinct_roots and wanted > len(domain.attributes):
            raise DpforestError(
                f"Recipe {self.name} gives every tree another root attribute and the domain has "
                f"{len(domain.attributes)}: ask for at most that many --trees, or take --recipe "
                f"{self.instead}."
            )
        deep = (own_depth if depth is None else depth) - self.root
        most = min(MAX_LEAVES, MAX_ALL_LEAVES // wanted)
        deepest = leaves_within(domain, self.ways, most)
        if not deepest:
            widest = max(
                (a for a in domain.attributes if by_cell(a, self.ways)), key=lambda a: a.cells
            )
            raise DpforestError(
                f'Recipe {self.name} gives every category a branch, and "{widest.name}" has too '
                f"many for {wanted} trees: group its categories, ask for fewer --trees, or take "
                f"--recipe {self.instead}."
            )
        return Request(
            domain,
            epsilon,
            wanted,
            max(1, min(deep, deepest)),
            rows_per_unit,
            rows,
            delta=delta,
        )

    def phases(self, request: Request) -> tuple[Request, ...]:
        """What each phase is asked to do: trees, and budget in proportion to them."""
        if self.second is None or request.trees < 2:
            return (request,)
        first = max(1, int(request.trees * self.second.share))
        counts = (first, request.trees - first)
        heavy = (1, self.second.heavy)
        return tuple(
            replace(
                request,
                epsilon=request.epsilon * trees // request.trees,
                trees=trees,
                rows_per_unit=request.rows_per_unit * times,
            )
            for trees, times in zip(counts, heavy, strict=True)
        )

    def whole_plan(self, request: Request) -> Plan:
        """The queries of all phases."""
        return Plan(tuple(q for phase in self.phases(request) for q in self.plan(phase).queries))


def repaired(published: Recipe, repair: str, **pieces: Any) -> Recipe:
    """The rigorous form of a published one, with other pieces in the places of those that fail."""
    return replace(published, published=published, flaws=(), repair=repair, **pieces)
