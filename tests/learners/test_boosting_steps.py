"""What boosting adds to the votes of its trees: Newton's steps, and the noise that is stated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from steps import seeded

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import column_types
from dpforest_duckdb.engine.base import Gradients
from dpforest_duckdb.learners import boosting
from dpforest_duckdb.learners.boosting import LARGEST_STEP
from dpforest_duckdb.learners.growth import one_split
from dpforest_duckdb.postprocess.newton_steps import StepWidths
from dpforest_duckdb.postprocess.noisy_shares import counted_shares
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.plan import PlannedQuery
from dpforest_duckdb.recipes import find
from dpforest_duckdb.tree import SCALE, Tree

MEASURES = (PURE_DP, GAUSSIAN_DP)
ALL = {PURE_DP: 10**6 * NANO, GAUSSIAN_DP: 10**12 * ATTO}  # costs at which noise is about 0


class EqualShares:
    """Rows whose scores are 0, so that all classes have equal shares p.

    `classes[leaf, class]` are the shares of the classes in each leaf, of so many `rows` there.
    """

    def __init__(self, classes: Floats, rows: int) -> None:
        self.classes, self.rows = classes, rows
        self.added: list[Tree] = []

    def add_votes(self, trees: Sequence[Tree]) -> None:
        self.added += trees

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        p = 1 / self.classes.shape[1]
        gradient = scale.whole * (self.classes - p)
        hessian = scale.whole * scale.hessian_numerator / scale.hessian_denominator * p * (1 - p)
        parts = np.stack([gradient, np.full_like(gradient, hessian)], axis=2)
        parts = parts[:, 1:] if self.classes.shape[1] == 2 else parts
        found = []
        for tree in trees:
            sums = np.zeros((tree.nodes, parts[0].size), dtype=np.int64)
            sums[tree.leaves[: len(parts)]] = np.rint(self.rows * parts.reshape(len(parts), -1))
            found.append(sums)
        return found


def domain_of(classes: int) -> Domain:
    attribute = Attribute("a", "categorical", ("x", "y"), nullable=False)
    labels = tuple(f"c{label}" for label in range(classes))
    return Domain((attribute,), "y", labels).bind(column_types({"a": "VARCHAR", "y": "VARCHAR"}))


def boosting_of(
    classes: list[list[float]], rows: int, *, seed: int = 0, histogram: tuple[int, ...] = ()
) -> boosting._Boosting:
    """Boosting on a table with these shares of classes at the first values of one attribute."""
    recipe, domain = find("boosted"), domain_of(len(classes[0]))
    request = replace(recipe.request(domain, NANO), rows=rows, histogram=histogram)
    context = SimpleNamespace(
        request=request,
        accountant=SimpleNamespace(plan=recipe.plan(request)),
        randomness=seeded(seed),
    )
    return boosting._Boosting(cast(Any, EqualShares(np.array(classes), rows)), cast(Any, context))


def stepped(found: boosting._Boosting, measure: Measure, cost: int) -> Tree:
    """A tree of one split after one whole step."""
    query = PlannedQuery("sweep", "m", (cost,), measure=measure)
    tree = one_split(found.context.request.domain, 0)
    (moved,) = found.newton_steps([tree], query, cost, 1.0, StepWidths())
    return moved.tree


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize(
    ("classes", "log_odds"),
    [
        ([[0.45, 0.55], [0.52, 0.48]], [[-0.1, 0.1], [0.04, -0.04]]),  # (y - p) / (p - p²)
        ([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3]], [[0.3, -0.15, -0.15], [-0.15, 0.3, -0.15]]),
    ],
)
def test_a_step_without_noise_is_newtons(
    measure: Measure, classes: list[list[float]], log_odds: list[list[float]]
) -> None:
    tree = stepped(boosting_of(classes, 10**6), measure, ALL[measure])
    votes = tree.votes[tree.leaves[:2]] / SCALE
    centred = votes - votes.mean(axis=1, keepdims=True)
    assert centred == pytest.approx(np.array(log_odds), abs=0.005)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_a_step_moves_no_two_classes_apart_by_more_than_the_limit(
    measure: Measure, classes: int
) -> None:
    certain = np.eye(classes)[:2].tolist()
    tree = stepped(boosting_of(certain, 10**6), measure, ALL[measure])
    apart = np.ptp(tree.votes[tree.leaves[:2]], axis=1) / SCALE
    assert apart == pytest.approx(LARGEST_STEP, abs=0.01)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_noise_in_votes_is_as_stated(classes: int) -> None:
    """It is that of votes minus their mean over the classes; two steps have independent noise."""
    shares, rows = [[1 / classes] * classes] * 2, 10**4
    cost = ATTO * 9 // 10**4
    steps = [
        stepped(boosting_of(shares, rows, seed=seed), GAUSSIAN_DP, cost) for seed in range(300)
    ]
    votes = np.stack([tree.votes[tree.leaves[:2]] for tree in steps])
    there = (votes - votes.mean(axis=2, keepdims=True)).std(axis=0)
    stated = np.mean(
        [tree.vote_noise[tree.leaves[:2]] for tree in steps if tree.vote_noise is not None], axis=0
    )
    assert stated.min() > 0.005 * SCALE, "far more than votes are rounded by"
    assert (there / stated).min() > 0.8
    assert (there / stated).max() < 1.25
    first, second = steps[:2]
    both = boosting._added(first, second)
    assert (both.votes == first.votes + second.votes).all()
    assert first.vote_noise is not None
    assert second.vote_noise is not None
    assert both.vote_noise == pytest.approx(np.sqrt(first.vote_noise**2 + second.vote_noise**2))


def test_a_class_that_noise_leaves_without_rows_starts_with_finite_log_odds() -> None:
    """By the posterior mean of its share, which is above 0."""
    found = boosting_of([[0.5, 0.5]], 100, histogram=(-5, 95))
    tree = found.start_at_shares()
    assert cast(Any, found.rows).added == [tree]
    first, second = tree.votes[0] / SCALE
    of_first, of_second = counted_shares(found.context.request, found.plan)
    assert second - first == pytest.approx(math.log(of_second / of_first), abs=0.001)
    assert 0 < of_first < of_second
