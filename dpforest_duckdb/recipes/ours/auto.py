"""auto, the default: count the rows with noise, then pick one of five recipes.

- boosting, for large tables (with a δ much earlier than without);
- a greedy tree beside sums of log-odds, if most attributes are numeric;
- joint tables, if all attributes fit into one release, below the values of a root where rows allow
  more than that;
- log-odds of the most informative attributes otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.recipes.ours.auto_rules import (
    boosting_pays,
    careful,
    models_differ,
    releases_all_tables,
    tree_pays,
)
from dpforest_duckdb.recipes.ours.boosted import BOOSTED
from dpforest_duckdb.recipes.ours.joint_tables import JOINT_TABLES
from dpforest_duckdb.recipes.ours.log_odds import LOG_ODDS
from dpforest_duckdb.recipes.ours.rooted_tables import ROOTED_TABLES, roots_see_enough
from dpforest_duckdb.recipes.ours.tree_beside_sums import TREE_BESIDE_SUMS
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request


def pick(request: Request) -> Recipe:
    """The recipe for a noisy number of rows."""
    counted = careful(request.rows, request)
    together = releases_all_tables(counted)
    if together and models_differ(counted) and roots_see_enough(request):
        return ROOTED_TABLES
    if tree_pays(counted) and not (request.rho and boosting_pays(counted)):
        return TREE_BESIDE_SUMS
    if boosting_pays(counted):
        return BOOSTED
    if not together:
        return LOG_ODDS
    return ROOTED_TABLES if models_differ(counted) else JOINT_TABLES


AUTO = replace(
    LOG_ODDS,
    name="auto",
    title="The default: one of five recipes, by the number of rows",
    adapt=None,
    successor=pick,
    successors=(BOOSTED, TREE_BESIDE_SUMS, ROOTED_TABLES, JOINT_TABLES, LOG_ODDS),
)
