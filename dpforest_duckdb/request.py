"""What a run is asked to do, what a learner returns, and the types between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.wording import Numbered, Purpose
from dpforest_duckdb.progress import Observer
from dpforest_duckdb.splits.candidates import SplitType
from dpforest_duckdb.splits.choose import Chooser
from dpforest_duckdb.tree import Tree


@dataclass(frozen=True)
class Request:
    """What a run is asked to do: by its user, then by what was released so far.

    Before a row is read, all of it is public. The preliminary steps of a run add released figures,
    from which trees, depth, bounds and bins may follow. Only in a published form that is not
    private can a figure be a true one.

    Asked for:

    - `epsilon` is nano-ε, less `preliminary_cost`; it is more than a plan may spend on trees, as
      the counts of rows are not taken off (`row_count_queries.left`). `delta` is atto-δ.
    - `depth` is the number of splits on the longest path, by which budgets are divided, as by
      `trees`; `max_splits` is a smaller number if a public limit cuts the trees, else 0.
    - `rows_per_unit` scales every sensitivity.
    - `disjoint` says that the trees hold disjoint rows, so that each may spend the whole budget.

    Released, or empty:

    - `rows` is a released or public number of rows, and `histogram` its classes.
    - `weights` are preferences of attributes, for choosers that use them; empty if all are equal.
    - `misclassified` is a noisy number of rows that the strongest attribute alone classifies
      wrongly.
    - `drawn` are the attributes that were drawn together with their bins.

    `preliminary` are the queries that were planned before the recipe was chosen or sized: the
    counts of the rows, and those about bounds and the strongest attribute. `preliminary_cost` is
    the nano-ε that the latter took from `epsilon`.
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
    max_splits: int = 0
    disjoint: bool = False
    preliminary: tuple[PlannedQuery, ...] = ()
    preliminary_cost: int = 0
    misclassified: int | None = None
    drawn: tuple[int, ...] = ()

    @property
    def deepest(self) -> int:
        """The most splits that a path can have: the depth, or where a limit cuts it."""
        return min(self.depth, self.max_splits or self.depth)

    @property
    def cut(self) -> str:
        """A sentence on how a public limit cuts the trees; empty if it does not."""
        if not self.max_splits:
            return ""
        return (
            f"Depth cut from {self.depth} to {self.max_splits} splits on a path, because deeper "
            "complete trees would have more leaves than a forest may have; the budget is divided "
            "by the full depth all the same."
        )

    @property
    def outside_most_frequent(self) -> int:
        """The released number of rows outside the most frequent class."""
        return sum(self.histogram) - max(self.histogram)

    def counted(self, classes: Integers) -> Request:
        """The request with the released rows of each class `[class]`; at least 1 row in all."""
        return replace(self, rows=max(int(classes.sum()), 1), histogram=tuple(classes.tolist()))

    def restricted_to_drawn(self) -> Request:
        """The request with the drawn attributes alone, in this order; itself if none were drawn."""
        if not self.drawn:
            return self
        kept = tuple(self.domain.attributes[number] for number in self.drawn)
        domain = replace(self.domain, attributes=kept)
        return replace(self, domain=domain, drawn=tuple(range(len(kept))))

    @property
    def squared_mu(self) -> int:
        """The μ² that δ and the whole ε allow, in atto-μ²; 0 under pure ε."""
        return self.allowed(GAUSSIAN_DP)

    @property
    def measure(self) -> Measure:
        """μ² if there is a δ, else ε; a recipe may plan in ε even so."""
        return GAUSSIAN_DP if self.squared_mu else PURE_DP

    def allowed(self, measure: Measure) -> int:
        """What δ and the whole ε allow in a measure, in nano-ε or atto-μ²."""
        return measure.allowed(self.epsilon + self.preliminary_cost, self.delta)

    def after(self, queries: tuple[PlannedQuery, ...], cost: int) -> Request:
        """The request with these preliminary queries, the last of which takes `cost` nano-ε."""
        return replace(
            self,
            preliminary=queries,
            epsilon=self.epsilon - cost,
            preliminary_cost=self.preliminary_cost + cost,
        )


@dataclass(frozen=True)
class Level:
    """What is released of the open nodes of a depth, for the decision to stop.

    `noisy[node, class]` is the histogram that the recipe asks of every node, or `[node, 1]` its
    size. `expected[node]` is the number of rows in it if every split sends equal parts to its
    branches. `widest[node]` is the most branches of a split that is still allowed there; branches
    of cells that the domain does not describe are not counted.
    """

    noisy: Integers | None
    expected: Floats
    widest: Integers
    request: Request
    plan: Plan


Stop = Callable[[Level], Mask]


@dataclass(frozen=True)
class Scores:
    """Integer scores of a row: sums of the votes of its leaves; released.

    `votes[score][tree][node]`; `cuts` ascend and divide every score into len(cuts) + 1 bins.
    Their joint histogram `[bin, …, class]` is released: a row is in one cell.
    """

    votes: Sequence[Sequence[Integers]]
    cuts: Sequence[int]


@dataclass(frozen=True)
class Grown:
    """What a learner releases: trees of noisy counts, and how scores and classes are related.

    `joint` is the noisy joint histogram of the recipe's scores; None if there is none. `limited` is
    the number of nodes that stayed leaves because of a size limit.
    """

    trees: Sequence[Tree]
    joint: Integers | None = None
    limited: int = 0


Finish = Callable[[Grown, Request, Plan], list[Tree]]


class LeafQuery(Protocol):
    """What a recipe asks of every leaf: its class counts, or only its label."""

    @property
    def ask(self) -> Callable[[Integers, int, int, CountNoise, Bits], Integers]:
        """The release of private `counts[leaf, class]` for ε (nano) and k rows per unit."""

    def deviation(self, epsilon: int, k: int) -> float:
        """The standard deviation of the noise in a released count; NaN if labels are released."""


class Pieces(Protocol):
    """The parts of a recipe that a learner uses."""

    @property
    def split_type(self) -> SplitType: ...

    @property
    def choose(self) -> Chooser | None: ...

    @property
    def stop(self) -> Stop | None: ...

    @property
    def leaf(self) -> LeafQuery: ...


@dataclass(frozen=True)
class TrainingContext:
    """What a learner works with, besides the rows."""

    recipe: Pieces
    request: Request
    accountant: Accountant
    randomness: Randomness
    observe: Observer


@dataclass(frozen=True)
class Learner:
    """A function that grows trees from coded rows.

    All that `grow` returns is public, or noisy and paid for from the context's accountant.
    `trees_at_once` is how many trees the rows are coded for, by default one, and `score_columns`
    the columns of scores and leaves that a row needs: public facts, which bound the temporary
    space. If all trees see all rows, a row has a column of nodes for each of them; otherwise one.
    `compares_trees` says that in the end every tree labels every row, even if a row trained only
    one of them, and `rates_mixtures` that rows give points to mixtures, for which equal rows may be
    found.
    `noise` gives, by the purpose of a planned query, the largest standard deviation of the noise in
    what it returns, in rows, where that does not follow from the query alone. It is public.
    """

    grow: Callable[[CodedRows, TrainingContext], Grown]
    trees_at_once: Callable[[Request], int] = lambda request: 1
    score_columns: Callable[[Request], int] = lambda request: 0
    compares_trees: bool = False
    rates_mixtures: bool = False
    noise: Mapping[Purpose | Numbered, Callable[[PlannedQuery, Request], float]] = field(
        default_factory=dict
    )

    def deviation(self, query: PlannedQuery, request: Request) -> float | None:
        """The largest standard deviation of the noise in a query, in rows; None for a choice."""
        if query.purpose in self.noise:
            return self.noise[query.purpose](query, request)
        return query.count_noise(request.rows_per_unit)
