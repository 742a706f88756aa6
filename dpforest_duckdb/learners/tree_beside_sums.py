"""Sums of log-odds with a greedy tree beside them, in a mixture that is chosen privately.

Attributes are drawn and their tables released; then a tree is grown on the same rows. Each is a
released model with log-odds as votes. The rows give points to a few mixtures of the two, and
permute-and-flip draws one. The tree is better if attributes act together. The sums are better if
many attributes say a little each; they get less weight if attributes are correlated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpforest_duckdb.engine.base import CodedRows, tables_of_all
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.informative_tables import (
    draw_attributes,
    release_in_groups,
    single_table_deviation,
    trees_of,
)
from dpforest_duckdb.learners.levels import LEVELS
from dpforest_duckdb.learners.mixtures import mixed_by_rows
from dpforest_duckdb.postprocess.log_odds import log_odds
from dpforest_duckdb.postprocess.pipeline import leaf_noise
from dpforest_duckdb.postprocess.shrinkage import shrink_to_parent, sum_upward
from dpforest_duckdb.postprocess.voting import integer_votes, of_leaves
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.tree import Tree

MIXTURES = (  # the weights of the sums and of the tree, in units of 1 / MIXTURE_PARTS
    (20, 0), (12, 0), (7, 0), (15, 7), (10, 10), (7, 15), (0, 20), (3, 3),
)  # fmt: skip
LEAST_SHARE = 1e-6  # of a class in a leaf, before its logarithm


def grow_both(rows: CodedRows, context: TrainingContext) -> Grown:
    """The trees of the sums, then the greedy tree, with the votes of the mixture that was drawn."""
    request, accountant = context.request, context.accountant
    sums = log_odds(Grown(_released_tables(rows, context)), request, accountant.plan)
    alone = replace(context, request=replace(request, trees=1))
    grown = LEVELS.grow(rows, alone)
    tree = _with_log_odds(grown.trees[0], request, leaf_noise(request, accountant.plan))
    return Grown(mixed_by_rows((sums, [tree]), MIXTURES, rows, context), limited=grown.limited)


def _released_tables(rows: CodedRows, context: TrainingContext) -> list[Tree]:
    """A tree of one split with noisy counts for each attribute that is drawn, or for all; and one
    with the rows of each class, if they were released.
    """
    request = context.request
    private = tables_of_all(rows)
    drawn = draw_attributes(rows, private, context)
    growth = Growth(request.domain.cells, len(drawn), len(request.domain.classes))
    return trees_of(release_in_groups(private, drawn, context), request, drawn, growth)


def _with_log_odds(tree: Tree, request: Request, noise: float) -> Tree:
    """The tree with the log-odds of its leaves' class shares as votes."""
    cells = request.domain.cells
    summed = sum_upward(tree, cells)
    odds = np.log(np.maximum(shrink_to_parent(summed, cells, noise), LEAST_SHARE))
    return replace(summed, votes=of_leaves(tree, integer_votes(odds)))


TREE_BESIDE_SUMS = Learner(
    grow_both,
    rates_mixtures=True,
    noise={Purpose.TABLES: single_table_deviation},
)
