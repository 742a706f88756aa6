"""auto, the default: count the rows with noise, then pick one of four recipes.

Boosting is picked where rows are many, far sooner with a δ than without; a greedy tree for several
classes of mostly numeric attributes; joint tables where all attributes fit into one release; and
log-odds of the most informative attributes elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.recipes.ours.auto_rules import (
    careful,
    prefers_greedy_tree,
    releases_all_tables,
    signal,
)
from dpforest_duckdb.recipes.ours.boosted import BOOSTED
from dpforest_duckdb.recipes.ours.greedy_tree import GREEDY_TREE
from dpforest_duckdb.recipes.ours.joint_tables import JOINT_TABLES
from dpforest_duckdb.recipes.ours.log_odds import LOG_ODDS
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request

CLEAR, CLEAR_PURE = 22, 1500  # the signal from which boosting does better, with a δ or without


def pick(request: Request) -> Recipe:
    """The recipe for a noisy number of rows."""
    counted = careful(request.rows, request)
    if signal(counted) >= (CLEAR if request.rho else CLEAR_PURE):
        return BOOSTED
    if prefers_greedy_tree(counted):
        return GREEDY_TREE
    return JOINT_TABLES if releases_all_tables(request) else LOG_ODDS


AUTO = replace(
    LOG_ODDS,
    name="auto",
    title="The default: one of four recipes, by the number of rows",
    adapt=None,
    successor=pick,
    successors=(BOOSTED, GREEDY_TREE, JOINT_TABLES, LOG_ODDS),
)
