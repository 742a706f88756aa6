"""log-odds: trees of one split whose log-odds add up, on the most informative attributes.

The number of attributes and bins follows from a noisy number of rows (`auto_rules`).
`dpforest_duckdb.postprocess.log_odds` turns the tables into votes.
"""

from __future__ import annotations

from dpforest_duckdb.learners.informative_tables import informative_tables
from dpforest_duckdb.postprocess.log_odds import log_odds, sums_cut
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto_rules import adapt, draw_percent, sums_are_fitted
from dpforest_duckdb.recipes.plans import by_rank
from dpforest_duckdb.recipes.recipe import as_many_as_attributes, own_recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import at_random


def plan(request: Request) -> Plan:
    scores = constants.CHECK if sums_are_fitted(request) else 0
    return by_rank(request, scores=scores, choice=draw_percent(request))


LOG_ODDS = own_recipe(
    name="log-odds",
    title="Log-odds of the most informative attributes",
    rows="all",
    split_type="multiway",
    choose=at_random,
    trees=as_many_as_attributes,
    depth=1,
    own_depth=True,
    keeps_size=True,
    distinct_roots=True,
    plan=plan,
    learner=informative_tables(sums_cut),
    private_bounds=True,
    asks_strongest=True,
    draws_bins=True,
    adapt=adapt,
    finish=log_odds,
    link="softmax",
)
