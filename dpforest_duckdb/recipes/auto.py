"""auto: trees of one split whose log-odds add up, on the attributes that tell most.

How many attributes and bins follows from a noisy number of rows; their votes are put together as
`dpforest_duckdb.evidence` says. Where a δ is granted and rows are many, `boosted` goes on instead.
"""

from __future__ import annotations

from fractions import Fraction

from dpforest_duckdb.budgets import LAPLACE
from dpforest_duckdb.evidence import log_odds, sums_cut
from dpforest_duckdb.privacy.accountant import Plan, Query, share
from dpforest_duckdb.recipe import OURS, Recipe, Request
from dpforest_duckdb.recipes.boosted import BOOSTED, ROWS
from dpforest_duckdb.sizing import adapt, cuts, signal
from dpforest_duckdb.splits.choose import by_utility, where_asked
from dpforest_duckdb.splits.utilities import MAX_COUNT

SCORES, CHOICE = 10, 40  # percent: of ε, of what is left
RANKED, FADING = 4, Fraction(7, 10)  # so few trees share by rank, each .7 of the one before
SPLIT = "permute-and-flip on max count"
CLEAR = 20  # the signal from which boosting does better


def plan(request: Request) -> Plan:
    part = SCORES if cuts(request) else 0
    rows, seen, rest = share(request.epsilon, (ROWS, part, 100 - ROWS - part))
    trees, every = request.trees, request.trees == len(request.domain.attributes)
    choice, tables = (0, rest) if every else share(rest, (CHOICE, 100 - CHOICE))
    queries = [Query("rows", LAPLACE, (rows,))]
    if not every:
        queries.append(Query("split", SPLIT, (choice // trees,), trees))
    parts = [FADING**rank for rank in range(trees)]
    alike = every or trees > RANKED
    leaf = ((tables // trees,), trees) if alike else (share(tables, parts),)
    queries.append(Query("leaf", LAPLACE, *leaf))
    scores = [Query("scores", LAPLACE, (seen,))] if seen else []
    return Plan((*queries, *scores))


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
    heir=lambda request: BOOSTED if request.rho and signal(request) >= CLEAR else None,
    scores=sums_cut(cuts),
    finish=log_odds,
    link="softmax",
    only=OURS,
)
