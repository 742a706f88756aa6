"""auto: trees of one split whose log-odds add up, on the attributes that tell most.

How many attributes and bins follows from a noisy number of rows; their votes are put together as
`dpforest_duckdb.evidence` says. Others go on instead: `boosted` where rows are many, with a δ far
sooner than without, a greedy tree for several classes of mostly numeric attributes, `joint-tables`
where all attributes can be told at once.
"""

from __future__ import annotations

from dpforest_duckdb.budgets import by_rank
from dpforest_duckdb.evidence import log_odds, sums_cut
from dpforest_duckdb.privacy.accountant import Plan
from dpforest_duckdb.recipe import OURS, Recipe, Request
from dpforest_duckdb.recipes.boosted import BOOSTED
from dpforest_duckdb.recipes.greedy_tree import GREEDY_TREE
from dpforest_duckdb.recipes.joint_tables import JOINT_TABLES
from dpforest_duckdb.sizing import adapt, careful, cuts, dense, signal, tells_all
from dpforest_duckdb.splits.choose import by_utility, where_asked
from dpforest_duckdb.splits.utilities import MAX_COUNT

SCORES, CHOICE = 10, 40  # percent: of ε, of what is left
CLEAR, CLEAR_PURE = 22, 1500  # the signal from which boosting does better, with a δ or without


def plan(request: Request) -> Plan:
    scores = SCORES if cuts(request) else 0
    split = "permute-and-flip on max count"
    return by_rank(request, split, scores=scores, choice=CHOICE)


def heir(request: Request) -> Recipe | None:
    seen = careful(request.rows, request)
    if signal(seen) >= (CLEAR if request.rho else CLEAR_PURE):
        return BOOSTED
    if dense(seen):
        return GREEDY_TREE
    return JOINT_TABLES if tells_all(request) else None


AUTO = Recipe(
    name="auto",
    title="Log-odds of the attributes that tell most",
    year=2026,
    paper="this package",
    rows="all",
    ways="multiway",
    choose=where_asked(by_utility(MAX_COUNT, "permute-and-flip")),
    trees=lambda domain: len(domain.attributes),
    depth=1,
    distinct_roots=True,
    plan=plan,
    adapt=adapt,
    heir=heir,
    scores=sums_cut(cuts),
    finish=log_odds,
    link="softmax",
    only=OURS,
)
