"""What `dpforest train --dry-run` shows: the queries of a run and what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpforest_duckdb.cli.output import emit, say, show_table, tell

if TYPE_CHECKING:
    from dpforest_duckdb.privacy.plan import PlannedQuery
    from dpforest_duckdb.recipes.branches import Branch
    from dpforest_duckdb.recipes.recipe import Recipe
    from dpforest_duckdb.request import Request
    from dpforest_duckdb.training.run import Run

COLUMNS = ("query", "mechanism", "cost of one", "depths", "trees", "noise (sd in rows)")
Ends = tuple[tuple["PlannedQuery", "Request"], tuple["PlannedQuery", "Request"]]


def show_plans(runs: list[Run], as_json: bool) -> None:
    """Print the plan of each run, as tables or as JSON."""
    if as_json:
        plans = [_plan(run) for run in runs]
        emit({"runs": plans} if len(runs) > 1 else plans[0])
        return
    for run in runs:
        _show_plan(run)


def _plan(run: Run) -> dict[str, Any]:
    """The queries of a run and what they cost, as JSON; `branches` depend on the noisy rows."""
    from dpforest_duckdb.privacy.amounts import ATTO, NANO
    from dpforest_duckdb.recipes.branches import branches

    left = run.account.budget().left_epsilon
    found = branches(run.recipe, run.request)
    return {
        "recipe": run.recipe.label,
        "cost": run.cost / NANO,
        **({"delta": run.delta / ATTO} if run.delta else {}),
        "left": None if left is None else left / NANO,
        "trees": run.request.trees,
        "depth": run.request.depth,
        "plan": [
            _query_facts(query, run.recipe, phase)
            for phase in run.recipe.phases(run.request)
            for query in run.recipe.plan(phase).queries
        ],
        **({"branches": [_branch_facts(branch) for branch in found]} if found else {}),
    }


def _query_facts(query: PlannedQuery, recipe: Recipe, request: Request) -> dict[str, Any]:
    return {
        "purpose": query.purpose,
        "mechanism": query.mechanism,
        "epsilon" if query.measure == "ε" else "rho": [
            cost / query.divisor for cost in query.by_depth
        ],
        "trees": query.times,
        "noise": recipe.learner.deviation(query, request),
    }


def _branch_facts(branch: Branch) -> dict[str, Any]:
    """A branch as JSON: the plan with its fewest rows, and the trees and depths at both ends."""
    other = branch.recipe.if_one_suffices
    return {
        "rows": [branch.least, branch.most],
        "recipe": branch.recipe.name,
        **({"if_one_suffices": other.name} if other else {}),
        "trees": [branch.first.trees, branch.last.trees],
        "depth": [branch.first.depth, branch.last.depth],
        "plan": [_query_facts(q, branch.recipe, branch.first) for q in branch.plans[0].queries],
    }


def _show_plan(run: Run) -> None:
    from dpforest_duckdb.privacy.amounts import ATTO, show
    from dpforest_duckdb.privacy.plan import AGAIN
    from dpforest_duckdb.recipes.branches import branches

    sizes = ""
    if found := branches(run.recipe, run.request):
        lines = [*_count_lines(run), *(line for branch in found for line in _branch_lines(branch))]
        show_table(("noisy rows", "recipe", *COLUMNS), lines, named=True)
    else:
        sizes = f", trees {run.request.trees}, depth at most {run.request.depth}"
        phases = run.recipe.phases(run.request)
        planned = [(query, phase) for phase in phases for query in run.recipe.plan(phase).queries]
        show_table(COLUMNS, [_query_line((each, each), run.recipe) for each in planned])
    if found:
        tell(
            "noisy rows: the recipe depends on them, so read the lines for your number of rows. "
            "These ranges assume equally frequent classes: if some are rare, a recipe may need "
            "more rows, and costs may differ."
        )
    tell("noise: the standard deviation of the noise in a count or a sum")
    if run.plan.query(AGAIN):
        tell(
            f"{AGAIN}: a second count of the rows, made only if the first is too noisy. The more "
            "rows there are, the less it costs. What it saves goes to the other queries."
        )
    if any(plan.query("bounds") for branch in found for plan in branch.plans):
        tell(
            "bounds: if public bounds look far too wide, narrower ones are estimated. This takes "
            "up to half of the budget from the queries below."
        )
    others = (branch.recipe.if_one_suffices for branch in found)
    follows = []
    if other := next(filter(None, others), None):
        follows.append(
            "if this query finds that one attribute alone classifies more than half of the rows "
            f"correctly, {other.name} uses what is left of the budget instead"
        )
    asking = [branch for branch in found if branch.recipe.asks_strongest]
    if any(plan.query("strongest") for branch in asking for plan in branch.plans):
        follows.append(
            "if one attribute alone classifies well, log-odds uses fewer attributes than the plan "
            "shows"
        )
    if follows:
        tell(f"strongest: {'; '.join(follows)}.")
    left = run.account.budget().left_epsilon
    delta = f", δ = {show(run.delta, ATTO)}" if run.delta else ""
    tell(
        f"recipe {run.recipe.label}{sizes}, cost ε = {show(run.cost)}{delta}"
        + (f", left ε = {show(left)}" if left is not None else "")
    )
    if left is not None and run.cost > left:
        say("The remaining budget does not allow this run.")


def _count_lines(run: Run) -> list[list[object]]:
    """A line for each query that counts the rows: all branches share them."""
    from dpforest_duckdb.privacy.plan import AGAIN, COUNTS

    lines = []
    for query in run.plan.queries:
        if query.purpose in COUNTS:
            line = _query_line(((query, run.request),) * 2, run.recipe)
            if query.purpose == AGAIN:
                line[2], line[-1] = f"{line[2]} at most", f"{line[-1]} at least"
            lines.append(["any", run.recipe.name, *line])
    return lines


def _branch_lines(branch: Branch) -> list[list[object]]:
    """A line for each query of a branch but those that count the rows, which all branches share.

    It shows ranges where figures depend on the number of rows.
    """
    from dpforest_duckdb.privacy.plan import COUNTS

    rows = f"{branch.least:,} to {branch.most:,}" if branch.most else f"{branch.least:,} and more"
    first, last = ([q for q in plan.queries if q.purpose not in COUNTS] for plan in branch.plans)
    return [
        [
            rows,
            branch.recipe.name,
            *_query_line(((few, branch.first), (many, branch.last)), branch.recipe),
        ]
        for few, many in zip(first, last, strict=True)
    ]


def _query_line(ends: Ends, recipe: Recipe) -> list[object]:
    """What is shown of a query, from its forms with the fewest and with the most rows."""
    (few, _), (many, _) = ends
    noise = [_rounded(recipe.learner.deviation(*end)) for end in ends]
    return [
        many.purpose,
        many.mechanism,
        f"{few.measure} = {_cost(few, many)}",
        _range(str(len(few.by_depth)), str(len(many.by_depth))),
        _range(str(few.times), str(many.times)),
        _range(*noise),
    ]


def _cost(few: PlannedQuery, many: PlannedQuery) -> str:
    """The cost of a query with the fewest and with the most rows; if depths differ in either, the
    least and the most of both.
    """
    if len({*few.by_depth}) == len({*many.by_depth}) == 1:
        return _range(few.each, many.each)
    return replace(few, by_depth=few.by_depth + many.by_depth).each


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _rounded(noise: float | None) -> str:
    if noise is None:
        return ""
    return f"{noise:.3g}" if noise < 1000 else f"{noise:,.0f}"
