"""auto: trees of one split whose log-odds add up, on the attributes that tell most.

How many attributes and bins follows from a noisy number of rows; their votes are put together as
`dpforest_duckdb.evidence` says. Everything is released under the budget or public.
"""

from __future__ import annotations

from fractions import Fraction

from dpforest_duckdb.budgets import LAPLACE
from dpforest_duckdb.evidence import log_odds, sums_cut
from dpforest_duckdb.privacy.accountant import Plan, Query, share
from dpforest_duckdb.recipe import OURS, Recipe, Request
from dpforest_duckdb.sizing import adapt, cuts
from dpforest_duckdb.splits.choose import by_utility, where_asked
from dpforest_duckdb.splits.utilities import MAX_COUNT

ROWS, SCORES, CHOICE = 3, 10, 40  # percent: of ε, of ε, of what is left
RANKED, FADING = 4, Fraction(7, 10)  # so few trees share by rank, each .7 of the one before


def plan(request: Request) -> Plan:
    seen = SCORES if cuts(request) else 0
    rows, seen, rest = share(request.epsilon, (ROWS, seen, 100 - ROWS - seen))
    trees, every = request.trees, request.trees == len(request.domain.attributes)
    choice, tables = (0, rest) if every else share(rest, (CHOICE, 100 - CHOICE))
    queries = [Query("rows", LAPLACE, (rows,))]
    if not every:
        mechanism = "permute-and-flip on max count"
        queries.append(Query("split", mechanism, (choice // trees,), trees))
    if every or trees > RANKED:
        queries.append(Query("leaf", LAPLACE, (tables // trees,), trees))
    else:
        parts = [FADING**rank for rank in range(trees)]
        queries.append(Query("leaf", LAPLACE, share(tables, parts)))
    if cuts(request):
        queries.append(Query("scores", LAPLACE, (seen,)))
    return Plan(tuple(queries))


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
    scores=sums_cut(cuts),
    finish=log_odds,
    link="softmax",
    only=OURS,
)
