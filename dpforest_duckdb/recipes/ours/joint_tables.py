"""joint-tables: the log-odds of every attribute, from tables in one release.

No attribute is chosen, so no budget is spent on a choice. For attributes of few values, joint noise
is much smaller than noise for each table.
"""

from __future__ import annotations

from dpforest_duckdb.learners import joint_tables as learner
from dpforest_duckdb.postprocess.log_odds import log_odds
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.recipes.ours.auto_rules import adapt_jointly
from dpforest_duckdb.recipes.plans import row_count_query
from dpforest_duckdb.recipes.recipe import OURS, Recipe
from dpforest_duckdb.request import Grown, Request
from dpforest_duckdb.splits.choose import at_random
from dpforest_duckdb.tree import Tree

SURE = 0.75  # factor of the log-odds of two classes, as attributes are correlated
DOUBT = 1.5  # in what several attributes add, times the square of noise over a class's rows


def plan(request: Request) -> Plan:
    rows = row_count_query(request)
    return Plan((rows, PlannedQuery("tables", "joint noise", (request.epsilon - rows.total,))))


def finish(grown: Grown, request: Request, plan: Plan) -> list[Tree]:
    """Log-odds, multiplied by less than 1: the noise of many attributes adds up in small
    classes.
    """
    rows = grown.trees[0]
    assert rows.counts is not None, "the first tree has the rows of each class"
    assert rows.noise is not None, "counts come with their noise"
    classes = len(request.domain.classes)
    rough = float(rows.noise[0]) * classes / max(int(rows.counts.sum()), 1)
    return log_odds(grown, request, plan, SURE if classes == 2 else 1 / (1 + DOUBT * rough**2))


JOINT_TABLES = Recipe(
    name="joint-tables",
    title="Log-odds of every attribute, by joint noise",
    year=2026,
    paper="this package",
    rows="all",
    split_type="multiway",
    choose=at_random,
    trees=lambda domain: len(domain.attributes),
    depth=1,
    distinct_roots=True,
    plan=plan,
    learner=learner.JOINT_TABLES,
    adapt=adapt_jointly,
    finish=finish,
    link="softmax",
    only=OURS,
)
