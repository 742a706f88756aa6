"""Plan first: what a run will ask of the private rows, and the accountant that holds it to that.

Costs add along a path (sequential composition) and over trees that share rows; nodes of one depth
and trees of disjoint rows hold different units, so they cost once (parallel composition). Pure ε,
in integer nano-ε.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dpforest_duckdb.privacy.units import show


class PlanError(AssertionError):
    """A run tried to ask more than it planned: a defect of the recipe, never of the user."""


@dataclass(frozen=True)
class Query:
    """One kind of question, asked once per depth at `levels` depths, in `times` trees.

    `epsilon` is what one asking costs at one node, in nano-ε; `times` is the number of trees that
    ask it of the same rows (1 where trees have disjoint rows).
    """

    purpose: str
    mechanism: str
    epsilon: int
    levels: int = 1
    times: int = 1

    @property
    def total(self) -> int:
        return self.epsilon * self.levels * self.times

    def __str__(self) -> str:
        repeats = [f"{self.levels} depths" if self.levels > 1 else ""]
        repeats.append(f"{self.times} trees" if self.times > 1 else "")
        often = " × ".join(part for part in repeats if part)
        cost = f"ε = {show(self.epsilon)}" + (f" × {often} = {show(self.total)}" if often else "")
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
    """Hands out the planned budget; asking for more than is left of a purpose raises."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._left: Counter[str] = Counter()
        for query in plan.queries:
            self._left[query.purpose] += query.total

    def spend(self, purpose: str, epsilon: int | None = None) -> int:
        """The ε (nano) of one asking, now spent in every tree that shares rows.

        By default what the plan says; a recipe that adapts to an earlier noisy figure may ask
        another amount, inside the purpose's total.
        """
        query = self.plan.query(purpose)
        if query is None:
            raise PlanError(f"no {purpose} was planned")
        amount = query.epsilon if epsilon is None else epsilon
        self._left[purpose] -= amount * query.times
        if amount <= 0 or self._left[purpose] < 0:
            raise PlanError(f"more {purpose} asked than planned")
        return amount

    @property
    def spent(self) -> int:
        return self.plan.epsilon - sum(self._left.values())


def share(epsilon: int, weights: Sequence[int]) -> tuple[int, ...]:
    """A budget in integer parts, rounded down: their sum never passes the whole."""
    return tuple(epsilon * weight // sum(weights) for weight in weights)
