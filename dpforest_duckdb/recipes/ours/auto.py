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
from dataclasses import dataclass, replace

from dpforest_duckdb.recipes.ours.auto_rules import (
    LITTLE,
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
from dpforest_duckdb.recipes.ours.joint_rules import releases_all_tables, releases_no_table
from dpforest_duckdb.recipes.ours.joint_tables import JOINT_TABLES
from dpforest_duckdb.recipes.ours.log_odds import LOG_ODDS
from dpforest_duckdb.recipes.ours.rooted_tables import ROOTED_TABLES, roots_show_enough
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
    f"one attribute alone makes fewer than {100 * LITTLE:g} % of the errors of always guessing the "
    "most frequent class"
)
BOOSTED_OR_LOG_ODDS, TREE_OR_LOG_ODDS = (
    _followed_by_log_odds(recipe, NEARLY_ALL, cost=clear_cost, suffices=little_is_unexplained)
    for recipe in (BOOSTED, TREE_BESIDE_SUMS)
)


@dataclass(frozen=True)
class Rule:
    """A recipe, and when `auto` picks it, unless an earlier rule holds.

    `holds` gets a request with a careful number of rows.
    """

    recipe: Recipe
    holds: Callable[[Request], bool]


RULES = (
    Rule(ROOTED_TABLES, roots_show_enough),
    Rule(TREE_BESIDE_SUMS, one_tree_shows_all),
    Rule(BOOSTED_OR_LOG_ODDS, lambda rows: boosting_pays(rows) and all_trees_wanted(rows)),
    Rule(BOOSTED, boosting_pays),
    Rule(TREE_OR_LOG_ODDS, lambda rows: tree_pays(rows) and all_trees_wanted(rows)),
    Rule(TREE_BESIDE_SUMS, tree_pays),
    Rule(JOINT_TABLES, releases_no_table),
    Rule(ROOTED_TABLES, lambda rows: releases_all_tables(rows) and models_differ(rows)),
    Rule(JOINT_TABLES, releases_all_tables),
    Rule(MEANS_OR_LOG_ODDS, means_pay),
    Rule(LOG_ODDS, lambda rows: True),
)


def pick(request: Request) -> Recipe:
    """The recipe for a noisy number of rows: that of the first rule that holds."""
    counted = careful(request.rows, request)
    return next(rule.recipe for rule in RULES if rule.holds(counted))


AUTO = replace(
    LOG_ODDS,
    name="auto",
    title="The default: one of six recipes, by the number of rows",
    adaptation=Adaptation(successor=pick, successors=tuple(rule.recipe for rule in RULES)),
)
