"""auto, the default: count the rows with noise, then pick one of six recipes.

- boosting, for large tables (with a δ much earlier than without), in which no attribute alone
  classifies nearly all rows;
- a greedy tree beside sums of log-odds, for several classes and mostly numeric attributes, where
  boosting does not pay yet and no attribute alone classifies nearly all rows; and in place of
  boosting, for two attributes and two classes;
- joint tables, if all attributes fit into one release, below the values of a root where rows allow
  more than that; before boosting, if roots are in a quarter of all pairs of attributes;
- class means of all attributes, for many classes and mostly numeric attributes, of which none
  alone classifies most rows, where rows do not suffice for the tables of all;
- log-odds of the most informative attributes otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpforest_duckdb.recipes.ours.auto_rules import (
    all_trees_wanted,
    boosting_pays,
    careful,
    little_is_unexplained,
    means_pay,
    models_differ,
    most_are_classified,
    one_tree_shows_all,
    tree_pays,
)
from dpforest_duckdb.recipes.ours.boosted import BOOSTED
from dpforest_duckdb.recipes.ours.class_means import CLASS_MEANS
from dpforest_duckdb.recipes.ours.joint_rules import (
    releases_all_tables,
    releases_no_table,
    sums_use_all,
)
from dpforest_duckdb.recipes.ours.joint_tables import JOINT_TABLES
from dpforest_duckdb.recipes.ours.log_odds import LOG_ODDS
from dpforest_duckdb.recipes.ours.rooted_tables import ROOTED_TABLES, roots_see_enough
from dpforest_duckdb.recipes.ours.tree_beside_sums import TREE_BESIDE_SUMS
from dpforest_duckdb.recipes.recipe import Adaptation, IfOneSuffices, Recipe
from dpforest_duckdb.recipes.strongest_query import clear_cost, strongest_cost
from dpforest_duckdb.request import Request


def _followed_by_log_odds(
    recipe: Recipe,
    when: str,
    *,
    cost: Callable[[Request], int],
    suffices: Callable[[Request], bool],
) -> Recipe:
    """The recipe, and `log-odds` in its place if one attribute suffices."""
    other = IfOneSuffices(LOG_ODDS, when, cost, suffices)
    return replace(recipe, adaptation=replace(recipe.adaptation, if_one_suffices=other))


MEANS_OR_LOG_ODDS = _followed_by_log_odds(
    CLASS_MEANS,
    "one attribute alone classifies more than half of all rows correctly",
    cost=strongest_cost,
    suffices=most_are_classified,
)
NEARLY_ALL = (
    "one attribute alone makes fewer than a twentieth of the errors of always guessing the most "
    "frequent class"
)
BOOSTED_OR_LOG_ODDS, TREE_OR_LOG_ODDS = (
    _followed_by_log_odds(recipe, NEARLY_ALL, cost=clear_cost, suffices=little_is_unexplained)
    for recipe in (BOOSTED, TREE_BESIDE_SUMS)
)


def pick(request: Request) -> Recipe:
    """The recipe for a noisy number of rows."""
    counted = careful(request.rows, request)
    together, differ = releases_all_tables(counted), models_differ(counted)
    if differ and (together or sums_use_all(counted)) and roots_see_enough(request):
        return ROOTED_TABLES
    if boosting_pays(counted):
        if one_tree_shows_all(counted):
            return TREE_BESIDE_SUMS
        return BOOSTED_OR_LOG_ODDS if all_trees_wanted(counted) else BOOSTED
    if tree_pays(counted):
        return TREE_OR_LOG_ODDS if all_trees_wanted(counted) else TREE_BESIDE_SUMS
    if releases_no_table(counted):
        return JOINT_TABLES
    if together:
        return ROOTED_TABLES if differ else JOINT_TABLES
    return MEANS_OR_LOG_ODDS if means_pay(counted) else LOG_ODDS


AUTO = replace(
    LOG_ODDS,
    name="auto",
    title="The default: one of six recipes, by the number of rows",
    adaptation=Adaptation(
        successor=pick,
        successors=(
            BOOSTED,
            BOOSTED_OR_LOG_ODDS,
            TREE_BESIDE_SUMS,
            TREE_OR_LOG_ODDS,
            ROOTED_TABLES,
            JOINT_TABLES,
            MEANS_OR_LOG_ODDS,
            LOG_ODDS,
        ),
    ),
)
