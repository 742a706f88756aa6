"""The plan: what a run will ask of the private rows, fixed before it reads them.

Costs add up along a path (sequential composition) and over trees that share rows. Nodes of one
depth, and trees on disjoint rows, hold different units, so together they cost once (parallel
composition). Costs are pure ε in integer nano-ε; with a δ, μ² in integer atto-μ² (see
`gaussian_dp`).

Released figures may decide whether the costs of the rest add up in ε or in μ². Outcomes of plans in
ε lose at most ε, and need no δ. All plans in μ² are one adaptive mechanism that stops before a
query that would exceed a fixed μ² (Smith & Thakurta, 2022); a plan in μ² fits, so it never needs
that stop. So outcomes of these are (ε, δ)-DP together, and δ counts once. A plan that spent a δ
outside μ² would need another proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.noise import LEAST_VARIANCE, laplace_deviation
from dpforest_duckdb.privacy.selection import Mechanism
from dpforest_duckdb.privacy.wording import Numbered, Purpose, wording

# the purposes of the queries that count the rows of each class
ROW_COUNTS = (Purpose.ROWS, Purpose.ROWS_AGAIN)


class PlanError(AssertionError):
    """A run tried to ask more than it planned: a defect of the recipe, never of the user."""


@dataclass(frozen=True)
class PlannedQuery:
    """One kind of query, asked of every node of a depth, in `times` trees.

    `by_depth` has the cost of one query at one node, in nano-ε or atto-μ² (`measure`), for each
    depth where it is asked. `times` is the number of trees that ask it of the same rows (1 if trees
    have disjoint rows). Some queries are asked in turns, or of attributes, instead (`wording`). If
    released figures choose queries that divide a cost (`Wording.divided`), `by_depth` has their
    cost together, and `times` is 1.
    `per_row` is the most that a row changes counts with discrete Laplace noise, all together; 0 if
    the query returns anything else.
    """

    purpose: Purpose | Numbered
    mechanism: str
    by_depth: tuple[int, ...]
    times: int = 1
    measure: Measure = PURE_DP
    per_row: int = 0

    def facts(self) -> dict[str, Any]:
        """The query as ledgers keep it, with the symbol of its measure."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**named, "measure": str(self.measure)}

    @property
    def total(self) -> int:
        return sum(self.by_depth) * self.times

    @property
    def squared_mu(self) -> int:
        """The whole cost in atto-μ², rounded up."""
        return sum(map(self.measure.squared_mu, self.by_depth)) * self.times

    def count_noise(self, rows_per_unit: int) -> float | None:
        """The largest standard deviation of a noisy count; None if the query returns no counts."""
        if not self.per_row:
            return None
        return laplace_deviation(min(self.by_depth), self.per_row * rows_per_unit)

    @property
    def each(self) -> str:
        """The cost of one query, for people: a range if depths differ."""
        least, most = (self.measure.shown(f(self.by_depth)) for f in (min, max))
        return least if least == most else f"{least} to {most}"

    @property
    def often(self) -> str:
        """How often the query is asked, such as "6 depths × 3 trees", or "divided among
        attributes"; "once" if once.
        """
        return wording(self.purpose).often((len(self.by_depth), self.times))

    def __str__(self) -> str:
        cost = f"{self.measure} = {self.each}"
        if wording(self.purpose).divided:
            cost += f", {self.often}"
        elif self.often != "once":
            cost += f" × {self.often} = {self.measure.shown(self.total)}"
        return f"{self.purpose}: {self.mechanism}, {cost}"


@dataclass(frozen=True)
class Answer:
    """What a query is answered by, as its plan states it: `mechanism` and `per_row` of
    `PlannedQuery`.
    """

    mechanism: str
    per_row: int = 0


def counted(of: str = "", per_row: int = 1) -> Answer:
    """Counts with discrete Laplace noise; `per_row` is 0 if the query does not return them."""
    return Answer(f"{PURE_DP.sums} on {of}" if of else PURE_DP.sums, per_row)


def drawn(mechanism: Mechanism, by: str = "") -> Answer:
    """A draw, `by` a utility."""
    return Answer(mechanism.on(by) if by else mechanism.name)


LAPLACE = counted()


def counting(
    purpose: Purpose | Numbered, by_depth: tuple[int, ...], *, of: str = "", per_row: int = 1
) -> PlannedQuery:
    """A query that returns counts with discrete Laplace noise."""
    answer = counted(of, per_row)
    return PlannedQuery(purpose, answer.mechanism, by_depth, per_row=answer.per_row)


@dataclass(frozen=True)
class Plan:
    """Every query of a run, known before any private row is read."""

    queries: tuple[PlannedQuery, ...]

    def __repr__(self) -> str:
        return "\n  ".join(["<Plan", *self.lines()]) + ">"

    @property
    def measure(self) -> Measure:
        """How costs add up: in μ² if some query has a cost in μ², else in ε."""
        return GAUSSIAN_DP if self.uses_delta else PURE_DP

    @property
    def uses_delta(self) -> bool:
        """Whether some query has a cost in μ²."""
        return any(query.measure == GAUSSIAN_DP for query in self.queries)

    @property
    def epsilon(self) -> int:
        """The whole cost in nano-ε, of a plan that uses no δ."""
        return sum(query.total for query in self.queries if query.measure == PURE_DP)

    @property
    def squared_mu(self) -> int:
        """The whole cost in atto-μ²."""
        return sum(query.squared_mu for query in self.queries)

    def debit(self, requested: int) -> int:
        """What to debit, in nano-ε: the requested ε, or what a published form really spends if that
        is more.
        """
        return requested if self.uses_delta else max(self.epsilon, requested)

    def fits(self, epsilon: int, delta: int) -> bool:
        """Whether ε (nano) and δ (atto) cover the whole plan.

        False if a cost is negative, because that would make room for others.
        """
        if any(cost < 0 for query in self.queries for cost in query.by_depth):
            return False
        return self.measure.spent(self) <= self.measure.allowed(epsilon, delta)

    def query(self, purpose: Purpose | Numbered) -> PlannedQuery | None:
        """The query for a purpose; None if the plan has none."""
        return next((query for query in self.queries if query.purpose == purpose), None)

    def planned(self, purpose: Purpose | Numbered) -> PlannedQuery:
        """The query for a purpose. Raises `PlanError` if the plan has none."""
        query = self.query(purpose)
        if query is None:
            raise PlanError(f"{purpose} was not planned")
        return query

    def row_precisions(self, rows_per_unit: int) -> list[float]:
        """The inverse variance of the noise in the rows of a class, of each query that counts
        them.
        """
        counts = [query for query in self.queries if query.purpose in ROW_COUNTS]
        noise = [laplace_deviation(query.total, rows_per_unit) for query in counts]
        return [1 / max(deviation**2, LEAST_VARIANCE) for deviation in noise]

    def row_noise(self, rows_per_unit: int) -> float:
        """The standard deviation of the noise in the rows of a class, by all queries that count
        them.
        """
        return 1 / math.sqrt(sum(self.row_precisions(rows_per_unit)))

    def lines(self) -> tuple[str, ...]:
        """The queries in words, one line for each."""
        return tuple(str(query) for query in self.queries)


def share(epsilon: int, weights: Sequence[int | Fraction]) -> tuple[int, ...]:
    """Divide a budget in proportion to weights, rounded down, so that the parts never exceed it."""
    return tuple(math.floor(Fraction(epsilon * weight) / sum(weights)) for weight in weights)


def evenly(epsilon: int, parts: int) -> tuple[int, ...]:
    """Divide a budget into equal integer parts."""
    return (epsilon // parts,) * parts if parts else ()
