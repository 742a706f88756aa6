"""What a run is asked to do, what a learner gives back, and the types between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.zcdp import rho_of
from dpforest_duckdb.progress import Observer
from dpforest_duckdb.splits.candidates import SplitType
from dpforest_duckdb.splits.choose import Chooser
from dpforest_duckdb.tree import Tree


@dataclass(frozen=True)
class Request:
    """What a run is asked to do; public, settled before any row is read.

    `epsilon` is nano-ε, `depth` the number of splits on the longest path, which budgets follow;
    `reach` is the depth that trees are cut to where a public limit does not allow it, else 0.
    `rows_per_unit` is the bound that scales every sensitivity, `rows` a number of rows that is
    released or public, 0 where there is none, `histogram` its classes. `weights` are what
    attributes are worth for choosers that prefer some; none where all are alike. `delta` is
    atto-δ; a recipe that adds up costs in ρ has `rho` of them to spend.
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
    reach: int = 0

    @property
    def deepest(self) -> int:
        """The number of splits that a path can have: the depth, or what it is cut to."""
        return min(self.depth, self.reach or self.depth)

    @property
    def cut(self) -> str:
        """What a public limit does to the trees, as a sentence; empty if it does nothing."""
        if not self.reach:
            return ""
        return (
            f"Depth cut from {self.depth} to {self.reach}, as complete trees that deep have more "
            "leaves than a forest may have; budgets follow the whole depth."
        )

    @property
    def rho(self) -> int:
        """What ε and δ pay for, in atto-ρ; 0 under pure ε."""
        return rho_of(self.epsilon, self.delta)


@dataclass(frozen=True)
class Level:
    """What is released of the open nodes of a depth, for the decision to stop.

    `noisy[node, class]` is the histogram that the recipe asks of every node, or `[node, 1]` its
    size; `expected[node]` the rows that it holds if every split sends equal parts to its branches;
    `widest[node]` the most branches that a split of it can have, of those that the domain declares.
    """

    noisy: Integers | None
    expected: Floats
    widest: Integers
    request: Request
    plan: Plan


Stop = Callable[[Level], Mask]


def whole(joint: Integers) -> Integers:
    """The histogram itself: a row is in one cell."""
    return joint


@dataclass(frozen=True)
class Scores:
    """Integer scores of a row, each the sum of the votes of the leaves that it is in; released.

    `votes[score][tree][node]`; `cuts` ascend and part every score into len(cuts) + 1 bins. What is
    asked of the rows is `asked` of the joint histogram `[bin, …, class]`, of sensitivity 1.
    """

    votes: Sequence[Sequence[Integers]]
    cuts: Sequence[int]
    asked: Callable[[Integers], Integers] = whole


@dataclass(frozen=True)
class Grown:
    """What the loop releases: trees of noisy counts, and how scores and classes go together.

    `joint` is what the recipe's scores ask, with noise; None where none is asked. `limited` counts
    the nodes that stay leaves at a limit of size.
    """

    trees: Sequence[Tree]
    joint: Integers | None = None
    limited: int = 0


ScoreRule = Callable[[Sequence[Tree], Request, Plan], Scores]
Finish = Callable[[Grown, Request, Plan], list[Tree]]


class LeafQuery(Protocol):
    """What a recipe asks of every leaf: its class counts, or its label alone."""

    @property
    def ask(self) -> Callable[[Integers, int, int, CountNoise, Bits], Integers]:
        """The release of private `counts[leaf, class]` for ε (nano) and k rows per unit."""


class Pieces(Protocol):
    """The parts of a recipe that a learner uses."""

    @property
    def split_type(self) -> SplitType: ...

    @property
    def choose(self) -> Chooser: ...

    @property
    def stop(self) -> Stop | None: ...

    @property
    def leaf(self) -> LeafQuery: ...

    @property
    def distinct_roots(self) -> bool: ...


@dataclass(frozen=True)
class TrainingContext:
    """What a learner works with, besides the rows."""

    recipe: Pieces
    request: Request
    account: Accountant
    randomness: Randomness
    observe: Observer


@dataclass(frozen=True)
class Learner:
    """How trees are grown from coded rows.

    `grow` may read the rows only by what it spends from the context's account. `node_columns` and
    `score_columns` give how many columns of nodes and of scores a coded row needs for a request:
    public facts, which bound the temporary space.
    """

    grow: Callable[[CodedRows, TrainingContext], Grown]
    node_columns: Callable[[Request], int]
    score_columns: Callable[[Request], int] = lambda request: 0
