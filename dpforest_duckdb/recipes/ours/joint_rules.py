"""When joint tables fit: whether the tables of all attributes can be released together.

All of it follows from public figures and a noisy number of rows, as in `auto_rules`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto_rules import (
    FEWEST,
    MOST,
    above_noise,
    all_trees_wanted,
    careful,
    classes_in,
    draw_percent,
    models_differ,
    tables_wanted,
)
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.table_codes import TableCodes

COARSEST = 2  # bins: the least of joint tables
MUCH_MORE = 1.5  # times what a chosen few say: then all replace them (docs/trials.md)


def releases_all_tables(request: Request) -> bool:
    """Whether the recipe is one of joint tables: all tables are released together.

    False unless `all_trees_wanted`. The request should have a careful number of rows.
    """
    return all_trees_wanted(request) and joint_tables_fit(request)


def releases_no_table(request: Request) -> bool:
    """Whether there are too few rows for the table of any attribute.

    False unless `all_trees_wanted`.
    """
    return all_trees_wanted(request) and out_of_reach(request)


def sums_use_all(request: Request) -> bool:
    """Whether `log-odds` would use the table of every attribute, and joint tables show all of them.

    False if a numeric attribute has more than MOST / 2 values, or if `all_trees_wanted` is false.
    The request should have a careful number of rows.
    """
    attributes = request.domain.attributes
    if not all_trees_wanted(request) or not all(_shown(each, MOST // 2) for each in attributes):
        return False
    return _shown_together(request) == tables_wanted(request) == len(attributes)


def out_of_reach(request: Request) -> bool:
    """Whether there are three classes or more, and fewer rows in a cell of a table than half the
    scale of the noise in its count.

    n is at least LEAST_ROWS. The request should have a careful number of rows.
    """
    cells = [len(each.described) for each in request.domain.recut(FEWEST).attributes]
    rows = max(request.rows, constants.LEAST_ROWS) / classes_in(request) * len(cells) / sum(cells)
    noise = noise_scale(request.epsilon, request.rows_per_unit) / (1 - draw_percent(request) / 100)
    return classes_in(request) > 2 and 2 * rows < noise


def joint_tables_fit(request: Request) -> bool:
    """Whether the tables of all attributes can be released together, by a careful number of rows.

    Such a table shows an attribute unless it is numeric with more values than the bins that joint
    noise allows. If there are few figures, it may have up to MOST / 2 values. With two classes most
    attributes must be shown. With more classes all must be, because `log-odds` draws a numeric
    attribute together with its bins. If joint noise is too much for any bins, all attributes must
    be shown, and their tables must say much more than those of the few that would be chosen.

    If sums are to be fitted, the tables of all attributes together must also have less noise than
    those of the few.
    """
    attributes, bins = len(request.domain.attributes), joint_bins(request)
    two = classes_in(request) == 2
    if _shown_together(request) < (attributes // 2 + 1 if two and bins else attributes):
        return False
    if not bins and not _all_say_more(request):
        return False
    fitted = two and models_differ(request)
    return not fitted or _finer_together(request)


def _shown_together(request: Request) -> int:
    """How many attributes are shown by tables that are released together."""
    bins = joint_bins(request)
    values = max(bins, MOST // 2) if few_figures_fit(request) else bins
    return sum(_shown(attribute, values) for attribute in request.domain.attributes)


def _shown(attribute: Attribute, values: int) -> bool:
    """Whether the attribute is not numeric, has at most so many values, or has no more of them than
    its coarsest bins.
    """
    most = attribute.recut(MOST).proper
    return attribute.kind != "numeric" or most <= max(values, attribute.recut(COARSEST).proper)


def joint_bins(request: Request) -> int:
    """The bins that joint noise allows numeric attributes; 0 if it is too much for any."""
    bins = MOST
    while bins >= COARSEST and (
        roughness(_figures(request.domain.attributes, bins), request) > constants.CLEAN
    ):
        bins //= 2
    return bins if bins >= COARSEST else COARSEST if few_figures_fit(request) else 0


def few_figures_fit(request: Request) -> bool:
    """Whether there are few joint figures, at most MOST, with little noise for the rows of a class.

    Then an ordered attribute counts as one figure, because its neighbouring values are similar. All
    figures count once for each pair of classes: the more pairs, the more often noise reverses one.
    The request should have a careful number of rows; CAUTION is taken off once more. With two
    classes they count as at least LEAST_ROWS, because sums of so few rows would have only one
    table.
    """
    attributes, classes = request.domain.attributes, classes_in(request)
    if _figures(attributes, COARSEST) > MOST:
        return False
    others = [each for each in attributes if not each.in_order]
    sure = careful(request.rows, request)
    if classes == 2:
        sure = replace(sure, rows=max(sure.rows, constants.LEAST_ROWS))
    figures = _figures(others, COARSEST) + len(attributes) - len(others)
    return above_noise(math.comb(classes, 2) * figures, sure)


def _figures(attributes: Iterable[Attribute], bins: int) -> int:
    return sum(TableCodes([each.recut(bins) for each in attributes]).blocks)


def roughness(figures: int, request: Request) -> float:
    """The noise of one of that many joint figures, divided by the rows of a class.

    All classes are taken to be equally frequent.
    """
    noise = figures * noise_scale(request.epsilon, request.rows_per_unit) / math.sqrt(3)
    return noise * classes_in(request) / max(request.rows, 1)


def _finer_together(request: Request) -> bool:
    """Whether joint tables of all attributes have less noise than tables of a chosen few."""
    attributes, k = request.domain.attributes, request.rows_per_unit
    if tables_wanted(request) == len(attributes):
        return False
    joint = TableCodes(attributes).deviations(request.epsilon, k)
    return float(np.mean(joint)) < _noise_of_few(request)


def _all_say_more(request: Request) -> bool:
    """Whether joint tables of all attributes say half as much again as tables of a chosen few.

    What tables say is measured by their number divided by the variance of their noise. They must
    say more because the few are not any attributes, but the strongest.
    """
    attributes, k = request.domain.recut(COARSEST).attributes, request.rows_per_unit
    joint = TableCodes(attributes).deviations(request.epsilon, k)
    said = len(attributes) / float(np.mean(np.square(joint)))
    return said >= MUCH_MORE * tables_wanted(request) / _noise_of_few(request) ** 2


def _noise_of_few(request: Request) -> float:
    """The standard deviation of the noise in tables of the few attributes that would be chosen."""
    part = (1 - draw_percent(request) / 100) / tables_wanted(request)
    return math.sqrt(2) * noise_scale(request.epsilon, request.rows_per_unit) / part
