"""rooted-tables: the log-odds of all attributes below the values of one or two chosen roots.

Sums of log-odds miss interactions of attributes. Below each value of a root, all other attributes
have other log-odds. A row is below one value only, so this costs no more than one set of
tables, but each table has fewer rows. If there are too few rows, there is no root. In both cases
one of several models of the same tables is drawn.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.rooted_tables import rooted_tables
from dpforest_duckdb.postprocess.pipeline import as_grown
from dpforest_duckdb.privacy.measure import PURE_DP
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.selection import PERMUTE_AND_FLIP
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours import constants, joint_tables
from dpforest_duckdb.recipes.ours.auto_rules import choice_part, classes_in, models_differ
from dpforest_duckdb.recipes.ours.joint_rules import releases_all_tables, sums_use_all
from dpforest_duckdb.recipes.plans import mixture_choice
from dpforest_duckdb.recipes.recipe import Adaptation, recipe_of_tables
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.table_codes import TableCodes


def roots(request: Request) -> tuple[list[int], int]:
    """The attributes that may be roots, and how many of them are drawn. Both are public.

    Two are drawn if at least half of the attributes have so few values that tables below two roots
    are well above their noise; else one, if the same holds for one root; else none.
    """
    cells = [len(attribute.described) for attribute in request.domain.attributes]
    most = constants.ROOT_NOISE / max(noise_of_sum(request), 1e-9)
    for drawn in (2, 1):
        allowed = [root for root, values in enumerate(cells) if 1 < values <= most ** (1 / drawn)]
        if 2 * len(allowed) >= len(cells) > drawn:
            return allowed, drawn
    return [], 0


def noise_of_sum(request: Request) -> float:
    """About the standard deviation that noise adds to a sum of all attributes' log-odds, without a
    root.

    It assumes that classes and cells have equal parts of the rows. With roots it is multiplied by
    the number of their combinations of values. 0 before the number of rows is known.
    """
    if not request.rows:
        return 0.0
    attributes, k = request.domain.attributes, request.rows_per_unit
    of_counts = TableCodes(attributes).deviations(request.epsilon, k)
    noise = [len(a.described) * of_one for a, of_one in zip(attributes, of_counts, strict=True)]
    rows = request.rows / classes_in(request)
    return math.sqrt(len(attributes)) * float(np.mean(noise)) / rows


def roots_show_enough(request: Request) -> bool:
    """Whether roots come before all other recipes: because they are in a quarter of all pairs of
    attributes, boosting adds little.

    Rows must tell models apart, and all attributes must be shown. With two classes there must be
    two roots, because sums of two classes are fitted to the rows. The request should have a careful
    number of rows.
    """
    if not models_differ(request):
        return False
    if not (releases_all_tables(request) or sums_use_all(request)):
        return False
    attributes, two = len(request.domain.attributes), classes_in(request) == 2
    _, drawn = roots(adapt(np.array(request.histogram), request))
    seen = drawn * (2 * attributes - 1 - drawn)  # twice the pairs with a root
    return drawn > two and 4 * seen >= attributes * (attributes - 1)


def plan(request: Request) -> Plan:
    """Draws of the roots, the tables below them, and a draw among the models of these tables.

    Costs are in nano-ε; a δ is not used.
    """
    _, drawn = roots(request)
    model = int(request.epsilon * choice_part(request))
    root = model // 2  # two roots cost as much as a choice among models
    tables = left(request, PURE_DP) - drawn * root - model
    draws = PlannedQuery(Purpose.ROOT, PERMUTE_AND_FLIP.on("max count"), (root,) * drawn)
    return Plan(
        (
            *preliminary_queries(request),
            *((draws,) if drawn else ()),
            PlannedQuery(Purpose.TABLES, PURE_DP.blocks, (tables,)),
            mixture_choice(model),
        )
    )


def adapt(histogram: Integers, request: Request) -> Request:
    """Bins as for joint tables; up to three splits on a path: two roots and an attribute."""
    return replace(joint_tables.adapt(histogram, request), trees=request.trees, depth=3)


ROOTED_TABLES = recipe_of_tables(
    name="rooted-tables",
    title="Log-odds of every attribute below a chosen one, by joint noise",
    depth=3,
    fixed_trees=True,
    plan=plan,
    learner=rooted_tables(lambda request: roots(request)[0]),
    adaptation=Adaptation(adapt, private_bounds=True),
    finish=as_grown,
)
