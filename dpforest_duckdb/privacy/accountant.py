"""The accountant: it gives out a planned budget, and refuses any query that was not planned."""

from __future__ import annotations

from dpforest_duckdb.privacy.plan import Plan, PlanError
from dpforest_duckdb.privacy.wording import Numbered, Purpose


class Accountant:
    """Gives out the planned budget, depth by depth; a query that was not planned raises
    `PlanError`.

    `debited` (nano-ε) and `delta` (atto-δ) bound the cost of an adapted plan.
    """

    def __init__(self, plan: Plan, debited: int, delta: int) -> None:
        self.plan = plan
        self._debited = debited
        self._delta = delta
        self._queried: dict[Purpose | Numbered, list[int]] = {}

    def spend(
        self, purpose: Purpose | Numbered, depth: int = 0, *, times: int = 1, among: int = 1
    ) -> int:
        """Spend a query at a depth; returns the cost of one.

        `times` is how often that cost is paid there, where a learner asks for it only once. With
        `among`, that many queries divide the cost equally, rounded down. Raises `PlanError` for a
        query that was not planned or was asked at this depth before, if `times` is more than
        planned, or if a query would cost less than 1.
        """
        query = self.plan.query(purpose)
        queried = self._queried.setdefault(purpose, [])
        if query is None or not 0 <= depth < len(query.by_depth):
            raise PlanError(f"{purpose} was not planned here")
        cost = query.by_depth[depth] // among
        if depth in queried or cost < 1 or times > query.times:
            raise PlanError(f"more {purpose} queries than planned")
        queried.append(depth)
        return cost

    def replan(self, plan: Plan) -> None:
        """Replace the plan by one that depends on a noisy figure.

        Raises `PlanError` if it does not fit into what was debited, or if a query that was already
        asked is another one in the new plan.
        """
        same = all(plan.query(purpose) == self.plan.query(purpose) for purpose in self._queried)
        if not same or not plan.fits(self._debited, self._delta):
            raise PlanError("the adapted plan costs more than was debited")
        self.plan = plan
