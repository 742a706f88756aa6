"""Plan first: what a run will ask of the private rows, and the accountant that holds it to that.

Costs add along a path (sequential composition) and over trees that share rows; nodes of one depth
and trees of disjoint rows hold different units, so they cost once (parallel composition). Pure ε,
in integer nano-ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpforest_duckdb.privacy.units import show


class PlanError(AssertionError):
    """A run tried to ask more than it planned: a defect of the recipe, never of the user."""


@dataclass(frozen=True)
class Query:
    """One kind of question, asked of every node of a depth, in `times` trees.

    `by_depth` is what one asking costs at one node, in nano-ε, at the depths where it is asked;
    `times` is the number of trees that ask it of the same rows (1 where trees have disjoint rows).
    """

    purpose: str
    mechanism: str
    by_depth: tuple[int, ...]
    times: int = 1

    @property
    def total(self) -> int:
        return sum(self.by_depth) * self.times

    @property
    def each(self) -> str:
        """ε of one asking, for people: a range where depths differ."""
        least, most = min(self.by_depth), max(self.by_depth)
        return show(least) if least == most else f"{show(least)} to {show(most)}"

    def __str__(self) -> str:
        levels = len(self.by_depth)
        repeats = [f"{levels} depths" if levels > 1 else ""]
        repeats.append(f"{self.times} trees" if self.times > 1 else "")
        often = " × ".join(part for part in repeats if part)
        cost = f"ε = {self.each}" + (f" × {often} = {show(self.total)}" if often else "")
        return f"{self.purpose}: {self.mechanism}, {cost}"


@dataclass(frozen=True)
class Plan:
    """Every query of a run, known before any private row is read."""

    queries: tuple[Query, ...]

    @property
    def epsilon(self) -> int:
        """The whole cost in nano-ε."""
        return sum(query.total for query in self.queries)

    def query(self, purpose: str) -> Query | None:
        return next((query for query in self.queries if query.purpose == purpose), None)

    def lines(self) -> tuple[str, ...]:
        return tuple(str(query) for query in self.queries)


class Accountant:
    """Hands out the planned budget, depth by depth; asking for what was not planned raises.

    `debited` is what an adapted plan may cost, by default what the plan does.
    """

    def __init__(self, plan: Plan, debited: int | None = None) -> None:
        self.plan = plan
        self._debited = plan.epsilon if debited is None else debited
        self._asked: dict[str, list[int]] = {}

    def spend(self, purpose: str, depth: int = 0) -> int:
        """The ε (nano) of one asking at a depth, now spent in every tree that shares rows."""
        query = self.plan.query(purpose)
        asked = self._asked.setdefault(purpose, [])
        if query is None or not 0 <= depth < len(query.by_depth):
            raise PlanError(f"{purpose} was not planned here")
        if depth in asked or query.by_depth[depth] < 1:
            raise PlanError(f"more {purpose} asked than planned")
        asked.append(depth)
        return query.by_depth[depth]

    def replan(self, plan: Plan) -> None:
        """Go on by a plan that rests on a noisy figure; it must fit into what was debited.

        What was asked already must stand in the new plan as it stood in the old one.
        """
        kept = all(plan.query(purpose) == self.plan.query(purpose) for purpose in self._asked)
        if not kept or plan.epsilon > self._debited:
            raise PlanError("the adapted plan costs more than was debited")
        self.plan = plan

    @property
    def spent(self) -> int:
        return sum(
            query.by_depth[depth] * query.times
            for query in self.plan.queries
            for depth in self._asked.get(query.purpose, [])
        )


def share(epsilon: int, weights: Sequence[int | Fraction]) -> tuple[int, ...]:
    """A budget in integer parts, rounded down: their sum never passes the whole."""
    return tuple(math.floor(Fraction(epsilon * weight) / sum(weights)) for weight in weights)


def evenly(epsilon: int, parts: int) -> tuple[int, ...]:
    """A budget in equal integer parts."""
    return (epsilon // parts,) * parts if parts else ()
