"""Draws one of several mixtures of released models, by the points that the rows give them.

Every row gives each mixture a whole number from 0 to `POINTS`, so with k rows per unit the
sensitivity is k·`POINTS`, and the utility is monotone: `draw_by_points`. In a large table only some
rows give points, which saves time. Which ones follows from a hash of a row's own codes, so a row
more still adds at most `POINTS` and changes no other row's part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpforest_duckdb.engine.base import POINTS, CodedRows
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Request, TrainingContext
from dpforest_duckdb.splits.choose import draw_by_points
from dpforest_duckdb.tree import Tree

ENOUGH = 2**14  # rows that give points, if there are so many
ABOVE_NOISE = 2**10  # or this many times the noise of the draw, if that is more


def draw_mixture(
    models: Sequence[Sequence[Tree]],
    mixtures: Sequence[Sequence[int]],
    rows: CodedRows,
    context: TrainingContext,
) -> int:
    """The number of the mixture that is drawn, for the budget of the query "mixture"."""
    context.observe(Event(Phase.COMPARE_SUMS))
    request, cost = context.request, context.account.spend("mixture")
    points = rows.rate_mixtures(models, mixtures, one_in(request, cost))
    return draw_by_points(points, POINTS, cost, request.rows_per_unit, context.randomness.bits)


def one_in(request: Request, cost: int) -> int:
    """Of how many rows one is to give points, by the noisy number of rows: public.

    All, if the domain has so few combinations of values that most rows are copies of each other.
    """
    enough = max(ENOUGH, float(ABOVE_NOISE * noise_scale(cost, request.rows_per_unit)))
    combinations = math.prod(request.domain.cells) * len(request.domain.classes)
    return max(1, int(min(request.rows, combinations) / enough))
