"""What `dpforest train --dry-run` shows: the queries of a run and what they cost."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

from dpforest_duckdb.cli.output import emit, show_table, tell
from dpforest_duckdb.domain.names import listed
from dpforest_duckdb.errors import number_of, one_line

if TYPE_CHECKING:
    from dpforest_duckdb.cli.output import Paragraph
    from dpforest_duckdb.domain import Attribute
    from dpforest_duckdb.privacy.plan import PlannedQuery
    from dpforest_duckdb.recipes.branches import Branch
    from dpforest_duckdb.recipes.recipe import IfOneSuffices, Recipe
    from dpforest_duckdb.request import Request
    from dpforest_duckdb.training.run import Run

MOST_VALUES = 12  # of an attribute that are shown
USED = 0.95  # of the debit is used by the queries of a plan, or it says how much is not
COLUMNS = ("query", "mechanism", "cost of one", "how often", "noise (sd in rows)")
Ends = tuple[tuple["PlannedQuery", "Request"], tuple["PlannedQuery", "Request"]]


@dataclass(frozen=True)
class QueryLine:
    """What is shown of a query, in the order of `COLUMNS`."""

    purpose: str
    mechanism: str
    cost: str
    often: str
    noise: str

    def __str__(self) -> str:
        """All but the purpose, in words."""
        noise = f", noise {self.noise}" if self.noise else ""
        return f"{self.mechanism}, {self.cost}, {self.often}{noise}"


# by the range of rows, and the recipe for it
LinesByRange = dict[tuple[str, str], list[QueryLine]]


def show_plans(runs: list[Run], as_json: bool) -> None:
    """Print the plan of each run, as tables or as JSON."""
    if as_json:
        plans = [_plan(run) for run in runs]
        emit({"runs": plans} if len(runs) > 1 else plans[0])
        return
    for run in runs:
        _show_plan(run)
    if len(runs) > 1:
        tell(_all_together(runs))


def _all_together(runs: list[Run]) -> str:
    """What several runs on the same rows cost together."""
    from dpforest_duckdb.privacy.amounts import ATTO, show

    cost, left = sum(run.cost for run in runs), runs[0].account.budget().left_epsilon
    of_delta = sum(run.delta for run in runs)
    delta = f", δ = {show(of_delta, ATTO)}" if of_delta else ""
    then = "" if left is None else f"; then ε = {show(left - cost)} is left"
    return f"All {len(runs)} runs together: cost ε = {show(cost)}{delta}{then}."


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
        "private": not run.reasons,
        "trees": run.request.trees,
        "depth": run.request.depth,
        "plan": [_query_facts(query, run.recipe, phase) for phase, query in _planned(run)],
        **({"branches": [_branch_facts(branch) for branch in found]} if found else {}),
    }


def _query_facts(query: PlannedQuery, recipe: Recipe, request: Request) -> dict[str, Any]:
    return {
        "purpose": query.purpose,
        "mechanism": query.mechanism,
        query.measure.json_key: [cost / query.measure.unit for cost in query.by_depth],
        "trees": query.times,
        "often": query.often,
        "noise": recipe.learner.deviation(query, request),
    }


def _if_one_suffices(branch: Branch) -> IfOneSuffices | None:
    """What may follow from the query "strongest", if the branch has it."""
    from dpforest_duckdb.privacy.wording import Purpose

    queried = any(plan.query(Purpose.STRONGEST) for plan in branch.plans)
    return branch.recipe.adaptation.if_one_suffices if queried else None


def _branch_facts(branch: Branch) -> dict[str, Any]:
    """A branch as JSON: the plan with its fewest rows, and the trees and depths at both ends."""
    other = _if_one_suffices(branch)
    return {
        "rows": [branch.least, branch.most],
        "recipe": branch.recipe.name,
        **({"if_one_suffices": other.recipe.name} if other else {}),
        "trees": [branch.first.trees, branch.last.trees],
        "depth": [branch.first.depth, branch.last.depth],
        "plan": [_query_facts(q, branch.recipe, branch.first) for q in branch.plans[0].queries],
    }


def _show_plan(run: Run) -> None:
    """Print a plan: first a summary in words, then every query."""
    from dpforest_duckdb.privacy.wording import steps
    from dpforest_duckdb.recipes.branches import branches

    found = branches(run.recipe, run.request)
    tell("A dry run: no row is read, and nothing is debited.")
    tell(f"debit     {_debit(run)}")
    tell(f"protects  {run.unit}, added or removed")
    for position, attribute in enumerate(run.request.domain.attributes):
        tell(f"{'' if position else 'public':10}{_declared(attribute, run.recipe.bins)}")
    if found:
        count = (
            "a noisy count of the rows"
            if _rows_are_noisy(run)
            else "a count of the rows without noise"
        )
        tell(f"recipe    {run.recipe.label}: {count} first, then by that number:")
        for least, most, recipe, purposes in _by_recipe(found):
            tell(f"  {_rows(least, most)} rows: {recipe}, to {steps(purposes)}")
    else:
        tell(
            f"recipe    {run.recipe.label}, trees {run.request.trees}, at most "
            f"{number_of(run.request.depth, 'split')} on a path"
        )
        tell(f"asks      to {steps(query.purpose for _, query in _planned(run))}")
    tell("Every query:")
    _show_queries(run, found)
    _explain(run, found)


def _declared(attribute: Attribute, bins: int) -> str:
    """What is public about an attribute. Categories are in quotes: one may have a comma.

    Cut points are shown if the domain sets them: if they do not follow from its bounds, its bins
    and its scale, or from the `bins` of the recipe, which are 0 if it has none.
    """
    known = listed(attribute.values, MOST_VALUES)
    if attribute.kind == "numeric":
        parts, follow = list[str](), tuple[object, ...]()
        if attribute.lower is not None:
            parts.append(f"{_end(attribute.lower)} to {_end(attribute.upper)}")
            made = attribute.bins or (not attribute.scale and bins) or None
            follow = replace(attribute, edges=(), bins=made).bound(attribute.type).edges
        if attribute.edges != follow:
            edges = [attribute.text(edge) for edge in attribute.edges]
            more = f" and {len(edges) - MOST_VALUES} more" if len(edges) > MOST_VALUES else ""
            parts.append(f"cut at {', '.join(edges[:MOST_VALUES])}{more}")
        known = ", ".join(parts)
    return f"{one_line(attribute.name)}: {known}"


def _end(bound: object) -> str:
    """A bound of numbers, or of dates without midnight."""
    return str(bound).removesuffix(" 00:00:00")


def _debit(run: Run) -> str:
    """What a run costs, whose budget pays, and what is left of it."""
    from dpforest_duckdb.privacy.amounts import ATTO, show

    left = run.account.budget().left_epsilon
    delta = f", δ = {show(run.delta, ATTO)}" if run.delta else ""
    cap = "no cap" if left is None else f"left ε = {show(left)}"
    place = f'{run.account.noun} "{run.account.display}"'
    return f"cost ε = {show(run.cost)}{delta}, before a row is read ({place}: {cap})"


def _by_recipe(found: list[Branch]) -> list[tuple[int, int | None, str, list[str]]]:
    """The fewest and the most rows of each recipe, its name, and the purposes of its queries.

    Neighbouring branches of one recipe with the same queries are one.
    """
    from dpforest_duckdb.privacy.plan import ROW_COUNTS

    ranges: list[tuple[int, int | None, str, list[str]]] = []
    for branch in found:
        least, name = branch.least, branch.recipe.name
        others = (q for q in branch.plans[0].queries if q.purpose not in ROW_COUNTS)
        purposes = [str(query.purpose) for query in others]
        if ranges and ranges[-1][2:] == (name, purposes):
            least, *_ = ranges.pop()
        ranges.append((least, branch.most, name, purposes))
    return ranges


def _planned(run: Run) -> list[tuple[Request, PlannedQuery]]:
    """Each query of a run, with the request of its phase."""
    phases = run.recipe.phases(run.request)
    return [(phase, query) for phase in phases for query in run.recipe.plan(phase).queries]


def _show_queries(run: Run, found: list[Branch]) -> None:
    if found:
        counts = _count_lines(run)
        lines: LinesByRange = {("any", run.recipe.name): counts} if counts else {}
        lines |= {(_rows(b.least, b.most), b.recipe.name): _branch_lines(b) for b in found}
        table = [(*key, *astuple(line)) for key, of_range in lines.items() for line in of_range]
        headings = (_rows_are_called(run), "recipe", *COLUMNS)
        show_table(headings, table, narrow=lambda: _paragraphs(lines, _rows_are_called(run)))
        return
    planned = [_query_line(((q, phase), (q, phase)), run.recipe) for phase, q in _planned(run)]
    show_table(
        COLUMNS,
        [astuple(line) for line in planned],
        narrow=lambda: [(line.purpose, [str(line)]) for line in planned],
    )


def _rows_are_noisy(run: Run) -> bool:
    """Whether a run pays for a noisy number of rows. Some forms as published use the true one."""
    from dpforest_duckdb.privacy.wording import Purpose

    return run.plan.query(Purpose.ROWS) is not None


def _rows_are_called(run: Run) -> str:
    """What the rows are called that a recipe depends on."""
    return "noisy rows" if _rows_are_noisy(run) else "rows"


def _paragraphs(lines: LinesByRange, called: str) -> list[Paragraph]:
    """The queries of a plan in a narrow terminal: a paragraph for each range of rows."""
    return [
        (
            f"{rows} {'number of ' if rows == 'any' else ''}{called}, {recipe}:",
            [f"{line.purpose}: {line}" for line in of_range],
        )
        for (rows, recipe), of_range in lines.items()
    ]


def _explain(run: Run, found: list[Branch]) -> None:
    """Say what the table of queries leaves open."""
    from dpforest_duckdb.privacy.amounts import ATTO, show, significant
    from dpforest_duckdb.privacy.wording import Purpose

    if found:
        tell(
            f"{_rows_are_called(run)}: the recipe depends on them, so read the lines for your "
            "number of rows. These ranges assume equally frequent classes: if some are rare, a "
            "recipe may need more rows, and costs may differ."
        )
    tell(
        "noise: the standard deviation of the noise in a count or a sum. For tables that are "
        "released in groups it is a rough figure, because it depends on their numbers of values."
    )
    plans = [plan for branch in found for plan in branch.plans] or [run.plan]
    if not found and not run.plan.uses_delta and run.plan.epsilon < USED * run.cost:
        tell(
            f"The queries use ε = {show(run.plan.epsilon)}. The rest of the debit is spent too, "
            "and no query uses it: the recipe divides its budget as its paper does."
        )
    if run.delta and any(plan.uses_delta for plan in plans):
        tell(
            "μ²: what a query that uses δ costs, by Gaussian differential privacy. "
            f"ε = {show(run.cost)} and δ = {show(run.delta, ATTO)} allow a sum of "
            f"{significant(run.request.squared_mu / ATTO)}. "
            f"A query with a cost in ε takes (π/2)·ε² of it.{_with_delta(found)}"
        )
    if run.plan.query(Purpose.ROWS_AGAIN):
        tell(
            f"{Purpose.ROWS_AGAIN}: a second count of the rows, made only if the first is too "
            "noisy. The more rows there are, the less it costs. What it saves goes to the other "
            "queries."
        )
    if any(plan.query(Purpose.BOUNDS) for branch in found for plan in branch.plans):
        tell(
            "bounds: if public bounds look far too wide, narrower ones are estimated. This takes "
            "up to half of what is left of the budget by then from the other queries."
        )
    if any(plan.query(Purpose.SWEEP_AGAIN) for plan in plans):
        tell(
            f"{Purpose.SWEEP_AGAIN}: the first sweep shows for which attributes another step pays. "
            "These divide the cost, so the fewer they are, the less noise each gets. The plan "
            "shows the noise if it is all of them."
        )
    without = " and without δ" if run.delta else ""
    follows = [
        f"if {when}, the run goes on with {other} in place of {' or '.join(names)}, and spends "
        f"what is left of ε{without}"
        for (when, other), names in _followed(found).items()
    ]
    asking = [branch for branch in found if branch.recipe.adaptation.queries_strongest]
    if any(plan.query(Purpose.STRONGEST) for branch in asking for plan in branch.plans):
        follows.append(
            "if one attribute alone classifies well, log-odds uses fewer attributes than the plan "
            "shows"
        )
    if follows:
        tell(f"strongest: {'; '.join(follows)}.")


def _followed(branches: list[Branch]) -> dict[tuple[str, str], list[str]]:
    """The recipes in whose place another may follow, by when it does and by its name."""
    found: dict[tuple[str, str], list[str]] = {}
    for branch in branches:
        other, name = _if_one_suffices(branch), branch.recipe.name
        if other is not None and name not in found.setdefault((other.when, other.recipe.name), []):
            found[other.when, other.recipe.name].append(name)
    return found


def _with_delta(branches: list[Branch]) -> str:
    """With how many rows a δ is used, if not always."""
    using = [any(plan.uses_delta for plan in branch.plans) for branch in branches]
    if all(using):
        return ""
    ranges: list[tuple[int, int | None]] = []
    for branch, before, uses in zip(branches, [False, *using], using, strict=False):
        if uses:
            least = ranges.pop()[0] if before else branch.least
            ranges.append((least, branch.most))
    rows = " or ".join(_rows(*each) for each in ranges)
    return f" δ is used with {rows} noisy rows; with other numbers it is debited, but not used."


def _count_lines(run: Run) -> list[QueryLine]:
    """A line for each query that counts the rows: all branches share them."""
    from dpforest_duckdb.privacy.plan import ROW_COUNTS
    from dpforest_duckdb.privacy.wording import Purpose

    lines = []
    for query in run.plan.queries:
        if query.purpose in ROW_COUNTS:
            line = _query_line(((query, run.request),) * 2, run.recipe)
            if query.purpose == Purpose.ROWS_AGAIN:
                line = replace(line, cost=f"{line.cost} at most", noise=f"{line.noise} at least")
            lines.append(line)
    return lines


def _branch_lines(branch: Branch) -> list[QueryLine]:
    """A line for each query of a branch but those that count the rows, which all branches share.

    It shows ranges where figures depend on the number of rows.
    """
    from dpforest_duckdb.privacy.plan import ROW_COUNTS

    first, last = (
        [q for q in plan.queries if q.purpose not in ROW_COUNTS] for plan in branch.plans
    )
    return [
        _query_line(((few, branch.first), (many, branch.last)), branch.recipe)
        for few, many in zip(first, last, strict=True)
    ]


def _query_line(ends: Ends, recipe: Recipe) -> QueryLine:
    """What is shown of a query, from its forms with the fewest and with the most rows."""
    from dpforest_duckdb.privacy.wording import wording

    (few, _), (many, _) = ends
    divided = wording(many.purpose).divided
    noise = _range(*(_rounded(recipe.learner.deviation(*end)) for end in ends))
    return QueryLine(
        purpose=str(many.purpose),
        mechanism=many.mechanism,
        cost=f"{few.measure} = {cost_in_words(few, many)}{' in total' if divided else ''}",
        often=_often(few, many),
        noise=f"{noise} at most" if divided else noise,
    )


def _rows(least: int, most: int | None) -> str:
    return f"{least:,} and more" if most is None else f"{least:,} to {most:,}"


def _often(few: PlannedQuery, many: PlannedQuery) -> str:
    """How often a query is asked, with the fewest and with the most rows, or what divides its
    cost.
    """
    from dpforest_duckdb.privacy.wording import wording

    ends = [(len(query.by_depth), query.times) for query in (few, many)]
    return wording(many.purpose).often(*ends)


def cost_in_words(few: PlannedQuery, many: PlannedQuery) -> str:
    """The cost of a query with the fewest and with the most rows; if depths differ in either, the
    least and the most of both.
    """
    from dpforest_duckdb.privacy.amounts import significant

    first, last = few.by_depth[0], many.by_depth[0]
    if any(len({*query.by_depth}) > 1 for query in (few, many)):
        costs = few.by_depth + many.by_depth
        first, last = min(costs), max(costs)
    unit = few.measure.unit
    return _range(significant(first / unit), significant(last / unit))


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _rounded(noise: float | None) -> str:
    if noise is None:
        return ""
    return f"{noise:.3g}" if noise < 1000 else f"{noise:,.0f}"
