"""Draws one of several mixtures of released models, by the points that the rows give them.

Every row gives each mixture a whole number of points from 0 to `POINTS`. So with k rows per unit
the sensitivity is k·`POINTS`, and the utility is monotone. In a large table only some rows give
points, which saves time. A hash of a row's own codes decides whether it does. So one more row still
adds at most `POINTS`, and does not change which other rows give points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpforest_duckdb.engine.base import MIXTURE_PARTS, POINTS, CodedRows
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Request, TrainingContext
from dpforest_duckdb.splits.choose import draw_best
from dpforest_duckdb.tree import Tree

RATED_ROWS = 2**14  # about this many rows give points, if there are so many
ABOVE_NOISE = 2**10  # or about this many times the noise of the draw, if that is more
WEIGHTS = (20, 14, 10, 7, 5, 3, 1)  # of sums of log-odds, in units of 1 / MIXTURE_PARTS


def draw_mixture(
    models: Sequence[Sequence[Tree]],
    mixtures: Sequence[Sequence[int]],
    rows: CodedRows,
    context: TrainingContext,
) -> int:
    """The number of the mixture that is drawn. It costs the budget of the query "mixture"."""
    context.observe(Event(Phase.COMPARE_SUMS))
    request, cost = context.request, context.accountant.spend(Purpose.MIXTURE)
    points = rows.rate_mixtures(models, mixtures, one_in(request, cost))
    return draw_best(points, cost, POINTS * request.rows_per_unit, context.randomness.bits)


def weighed_by_rows(
    start: Tree, added: Sequence[Tree], rows: CodedRows, context: TrainingContext
) -> list[Tree]:
    """The trees, with the votes of those `added` times one of WEIGHTS, which the rows choose.

    A sum of log-odds counts correlated attributes twice, so it needs a weight of at most 1. `start`
    votes for all rows and has none. It costs the budget of the query "mixture".
    """
    mixtures = [(MIXTURE_PARTS, weight) for weight in WEIGHTS]
    return mixed_by_rows(([start], added), mixtures, rows, context)


def mixed_by_rows(
    models: Sequence[Sequence[Tree]],
    mixtures: Sequence[Sequence[int]],
    rows: CodedRows,
    context: TrainingContext,
) -> list[Tree]:
    """The trees of the mixture that the rows choose, with their votes times its weights.

    It costs the budget of the query "mixture".
    """
    return mixed(models, mixtures[draw_mixture(models, mixtures, rows, context)])


def one_in(request: Request, cost: int) -> int:
    """One in how many rows gives points. It follows from the noisy number of rows, so it is public.

    It is 1 if the domain has few combinations of values: then many rows are equal, and equal rows
    are rated together.
    """
    enough = max(RATED_ROWS, float(ABOVE_NOISE * noise_scale(cost, request.rows_per_unit)))
    combinations = math.prod(request.domain.cells) * len(request.domain.classes)
    return max(1, int(min(request.rows, combinations) / enough))


def mixed(models: Sequence[Sequence[Tree]], weights: Sequence[int]) -> list[Tree]:
    """The trees of all models, with the votes of each times its weight; without those of weight 0.

    Weights are in units of 1 / MIXTURE_PARTS.
    """
    return [
        weighed(tree, weight)
        for trees, weight in zip(models, weights, strict=True)
        if weight
        for tree in trees
    ]


def weighed(tree: Tree, parts: int) -> Tree:
    """The tree with its votes times parts / MIXTURE_PARTS.

    Votes stay whole, because they are multiples of SCALE / 1000.
    """
    return replace(tree, votes=tree.votes * parts // MIXTURE_PARTS)
