"""joint-tables: the log-odds of every attribute, from tables in one release.

No attribute is chosen, so no budget is spent on a choice. For attributes of few values, joint noise
is much smaller than noise for each table.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.joint_tables import JOINT_TABLES as LEARNER
from dpforest_duckdb.postprocess.log_odds import log_odds
from dpforest_duckdb.privacy.measure import PURE_DP
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours.auto_rules import with_histogram
from dpforest_duckdb.recipes.ours.joint_rules import COARSEST, joint_bins, out_of_reach
from dpforest_duckdb.recipes.recipe import Adaptation, recipe_of_tables
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Grown, Request
from dpforest_duckdb.tree import Tree


def plan(request: Request) -> Plan:
    """The tables of all attributes, with all that is left of ε after the preliminary queries."""
    tables = PlannedQuery(Purpose.TABLES, PURE_DP.blocks, (left(request, PURE_DP),))
    return Plan((*preliminary_queries(request), tables))


def adapt(histogram: Integers, request: Request) -> Request:
    """All attributes, in as many bins as joint noise allows; none if they are out of reach."""
    seen = with_histogram(histogram, request)
    domain = seen.domain.recut(max(joint_bins(seen), COARSEST))
    trees = 0 if out_of_reach(seen) else len(domain.attributes)
    return replace(seen, trees=trees, depth=1, domain=domain)


def finish(grown: Grown, request: Request, plan: Plan) -> list[Tree]:
    """Log-odds. Sums of all attributes are overconfident, because some repeat others."""
    return log_odds(grown, request, plan, overlapping=True)


JOINT_TABLES = recipe_of_tables(
    name="joint-tables",
    title="Log-odds of every attribute, by joint noise",
    depth=1,
    fixed_trees=True,
    one_tree_per_attribute=True,
    plan=plan,
    learner=LEARNER,
    adaptation=Adaptation(adapt, private_bounds=True),
    finish=finish,
)
