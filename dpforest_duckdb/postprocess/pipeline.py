"""From grown trees to votes: a sequence of post-processing steps for each tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.request import Finish, Grown, Request
from dpforest_duckdb.tree import Tree

Step = Callable[[Tree, Request, Plan], Tree]


def each(*steps: Step) -> Finish:
    """The steps in sequence, on every tree."""

    def finish(grown: Grown, request: Request, plan: Plan) -> list[Tree]:
        done = list(grown.trees)
        for step in steps:
            done = [step(tree, request, plan) for tree in done]
        return done

    return finish


as_grown = each()  # for learners that set the votes themselves


def alone(function: Callable[[Tree], Tree]) -> Step:
    """A step that needs only the tree."""
    return lambda tree, request, plan: function(tree)


def with_cells(function: Callable[[Tree, Sequence[int]], Tree]) -> Step:
    """A step that also needs the cells of the domain."""
    return lambda tree, request, plan: function(tree, request.domain.cells)


def with_noise(function: Callable[[Tree, Sequence[int], float], Tree]) -> Step:
    """A step that also needs the domain's cells and the standard deviation of a leaf's count."""
    return lambda tree, request, plan: function(
        tree, request.domain.cells, leaf_noise(request, plan)
    )


def leaf_noise(request: Request, plan: Plan) -> float:
    """The standard deviation of a noisy count at a leaf, about √2 k / ε."""
    cost = plan.planned(Purpose.LEAF).by_depth[0]
    return math.sqrt(2) * noise_scale(cost, request.rows_per_unit)
