"""log-odds: trees of one split whose log-odds add up, on the most informative attributes.

The number of attributes and bins follows from a noisy number of rows (`auto_rules`).
`dpforest_duckdb.postprocess.log_odds` turns the tables into votes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.informative_tables import INFORMATIVE_TABLES
from dpforest_duckdb.postprocess.log_odds import CUTS, log_odds
from dpforest_duckdb.privacy.measure import PURE_DP
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery, counting, evenly, share
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto_rules import (
    FEWEST,
    MOST,
    choice_part,
    classes_in,
    draw_percent,
    few_sums,
    leaves,
    strength,
    tables_wanted,
    with_histogram,
)
from dpforest_duckdb.recipes.plans import mixture_choice
from dpforest_duckdb.recipes.recipe import Adaptation, recipe_of_tables
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Grown, Request
from dpforest_duckdb.tree import Tree

# up to RANKED trees, each gets FADING times the share of the one before
RANKED, FADING = 4, Fraction(7, 10)


def plan(request: Request) -> Plan:
    """A noisy number of rows, the attributes, their tables, and what their sums are checked by."""
    rest = left(request, PURE_DP)
    checks = _checks(request, rest)
    tables = rest - sum(query.total for query in checks)
    return Plan((*preliminary_queries(request), *drawn_tables(request, tables), *checks))


def _checks(request: Request, rest: int) -> tuple[PlannedQuery, ...]:
    """A histogram of sums that are to be fitted, a choice of the weight of others, or neither."""
    if sums_are_fitted(request):
        return (counting(Purpose.SCORES, (request.epsilon * constants.CHECK // 100,)),)
    if sums_are_weighed(request):
        return (mixture_choice(int(rest * choice_part(request))),)
    return ()


def drawn_tables(request: Request, whole: int) -> tuple[PlannedQuery, ...]:
    """The draws of attributes, unless all are used, and the tables of those drawn.

    Both together cost `whole`, in nano-ε.
    """
    trees, every = request.trees, request.trees == len(request.domain.attributes)
    if every:
        return (tables_query(whole, trees, every=True),)
    percent = draw_percent(request)
    draws, tables = share(whole, (percent, 100 - percent))
    how = PERMUTE_AND_FLIP.on("sums of max counts")
    drawn = PlannedQuery(Purpose.ATTRIBUTE, how, evenly(draws, trees))
    return drawn, tables_query(tables, trees, every=False)


def tables_query(cost: int, trees: int, *, every: bool) -> PlannedQuery:
    """The query for the tables of attributes that were drawn, or of `every` attribute.

    Few drawn attributes divide the cost, in nano-ε, by rank; others bring equal parts of it.
    """
    how = f"{PURE_DP.blocks} in groups"
    if every or trees > RANKED:
        return PlannedQuery(Purpose.TABLES, how, (cost // trees,), trees)
    return PlannedQuery(Purpose.TABLES, how, share(cost, [FADING**rank for rank in range(trees)]))


def sums_are_fitted(request: Request) -> bool:
    """Whether sums of log-odds are counted in bins and fitted. Only those of two classes are.

    A cell of the histogram of two sums should have at least as many rows, on average, as the
    standard deviation of its noise.
    """
    cells = 2 * (len(CUTS) + 1) ** 2
    rows = strength(request) * constants.CHECK / 100 / cells
    return classes_in(request) == 2 and rows >= math.sqrt(2)


def sums_are_weighed(request: Request) -> bool:
    """Whether the rows choose a weight of the sums: from rows for two leaves of a tree on.

    Sums of two classes are fitted instead.
    """
    enough = leaves(request) >= 2 and few_sums(request)
    return classes_in(request) > 2 and request.trees > 1 and enough


def finish(grown: Grown, request: Request, plan: Plan) -> list[Tree]:
    """Log-odds as votes; the learner has made them if the rows have chosen a weight."""
    return list(grown.trees) if plan.query(Purpose.MIXTURE) else log_odds(grown, request, plan)


def adapt(histogram: Integers, request: Request) -> Request:
    """Trees and bins by strength, from noisy class counts of all rows, minus CAUTION deviations."""
    seen = with_histogram(histogram, request)
    trees = min(request.trees, tables_wanted(seen))
    bins = 2 * round(constants.TABLES / 2 * strength(seen) / trees / math.sqrt(classes_in(request)))
    bins = min(max(bins, FEWEST), MOST)
    return replace(seen, trees=trees, depth=1, domain=request.domain.recut(bins))


LOG_ODDS = recipe_of_tables(
    name="log-odds",
    title="Log-odds of the most informative attributes",
    depth=1,
    one_tree_per_attribute=True,
    plan=plan,
    learner=INFORMATIVE_TABLES,
    adaptation=Adaptation(
        adapt,
        keeps_size=True,
        private_bounds=True,
        queries_strongest=True,
        draws_bins=True,
    ),
    finish=finish,
)
