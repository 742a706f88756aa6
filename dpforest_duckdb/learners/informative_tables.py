"""Trees of one split on attributes that are drawn one after the other, with noisy counts.

The utility of an attribute is a sum of rows: those that it classifies correctly by itself, and
those that it classifies correctly together with each attribute drawn before. Correct is the most
frequent class at each value, or at each pair of values. So an attribute that repeats another is
rarely drawn beside it.

One more row raises each term of the sum by 1 or not at all. So with t terms and k rows per privacy
unit, the sensitivity is t·k, and the utility is monotone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.levels import release_leaves
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, ScoreRule, TrainingContext
from dpforest_duckdb.splits.choose import classified, draw_best
from dpforest_duckdb.splits.limits import MAX_LEAVES, fitting, most_counted
from dpforest_duckdb.tree import MULTIWAY


def draw_attributes(
    rows: CodedRows, tables: Sequence[Integers], context: TrainingContext
) -> list[int]:
    """An attribute for each tree, drawn one after the other, without repeats.

    `tables[attribute][value, class]` are the private counts of all rows. Pairs with an attribute of
    very many values are left out of the sum, because there would be too many counts. The query
    "attribute" has the cost of each turn.
    """
    request, drawn, terms = context.request, list[int](), 1
    utilities = np.array([classified(table) for table in tables])
    for turn in range(request.trees):
        cost = context.account.spend("attribute", turn)
        if drawn and request.domain.cells[drawn[-1]] <= most_counted(request.domain):
            together = np.array([classified(pairs) for pairs in rows.count_pairs(drawn[-1])])
            utilities, terms = utilities + together, terms + 1
        left = [attribute for attribute in range(len(tables)) if attribute not in drawn]
        sensitivity = terms * request.rows_per_unit
        drawn.append(left[draw_best(utilities[left], cost, sensitivity, context.randomness.bits)])
    return drawn


def informative_tables(rule: ScoreRule) -> Learner:
    """Tables of the drawn attributes, or of all; then a noisy histogram of sums, if it is planned.

    `rule` gives the sums: votes at the trees' leaves.
    """

    def grow(rows: CodedRows, context: TrainingContext) -> Grown:
        growth, account = _counted(rows, context), context.account
        trees = growth.finished()
        if not account.plan.query("scores"):
            return Grown(trees, limited=growth.limited)
        context.observe(Event(Phase.COMPARE_SUMS))
        scores = rule(trees, context.request, account.plan)
        votes = [growth.spread(score) for score in scores.votes]
        private = rows.count_scores(votes, scores.cuts)
        k = context.request.rows_per_unit
        noisy = context.randomness.noise.laplace(private, account.spend("scores"), k)
        return Grown(trees, noisy, growth.limited)

    return Learner(grow, node_columns=lambda request: request.trees)


def _counted(rows: CodedRows, context: TrainingContext) -> Growth:
    """The trees, with noisy counts at their leaves."""
    request = context.request
    growth = Growth(request.domain.cells, request.trees, len(request.domain.classes))
    attributes = np.array(_attributes(rows, context))
    sizes, equal = np.array(request.domain.cells)[attributes], np.ones(request.trees)
    fits = fitting(sizes, equal, MAX_LEAVES - growth.leaves, MAX_LEAVES)
    growth.limited += int((~fits).sum())
    split = np.flatnonzero(fits)
    kind, cell = np.full(len(split), MULTIWAY), np.zeros(len(split), dtype=np.int64)
    rows.route(growth.split(split, attributes[split], kind, cell), growth.nodes)
    return release_leaves(rows, context, growth)


def _attributes(rows: CodedRows, context: TrainingContext) -> list[int]:
    """The attributes of the trees: drawn ones, or without such a query all of them."""
    request, account = context.request, context.account
    if not account.plan.query("attribute"):
        return list(range(request.trees))
    context.observe(Event(Phase.CHOOSE_SPLITS))
    tables = [table[0] for table in rows.count_classes(0, request.trees)]
    return draw_attributes(rows, tables, context)
