"""The accountant: hands out a planned budget and holds a run to its plan."""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.privacy.plan import Plan, PlanError


class Accountant:
    """Hands out the planned budget, depth by depth; asking for what was not planned raises.

    `debited`, nano-ε, and `delta`, atto-δ, are what an adapted plan may cost, by default what the
    plan does.
    """

    def __init__(self, plan: Plan, debited: int | None = None, delta: int = 0) -> None:
        self.plan = plan
        self._debited = plan.epsilon if debited is None else debited
        self._delta = delta
        self._asked: dict[str, list[int]] = {}

    def spend(self, purpose: str, depth: int = 0) -> int:
        """The cost of one asking at a depth, now spent in every tree that shares rows."""
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
        if not kept or not plan.fits(self._debited, self._delta):
            raise PlanError("the adapted plan costs more than was debited")
        self.plan = plan

    @property
    def spent(self) -> Plan:
        """What was asked so far, as a plan."""
        asked = [
            replace(query, by_depth=tuple(query.by_depth[d] for d in self._asked[query.purpose]))
            for query in self.plan.queries
            if self._asked.get(query.purpose)
        ]
        return Plan(tuple(asked))
