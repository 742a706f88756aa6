"""Boosting: when the default picks it, and in what size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from boosted_rows import DELTA, fill, public
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.learners.private_bins import (
    cut_at_medians,
)
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto import AUTO, pick
from dpforest_duckdb.recipes.ours.auto_rules import PURE, signal


@pytest.mark.parametrize("delta", [0, DELTA])
@some("classes", [2, 3, 5, 9, 16, 30], keep=2)
@some("attributes", [3, 8, 14], keep=2)
def test_more_rows_never_lead_back_to_a_simpler_recipe(
    attributes: int, classes: int, delta: int
) -> None:
    """For numbers: sums, class means and a tree beside sums for several classes, boosting."""
    kinds = [Attribute(f"n{i}", "numeric", lower=0, upper=100) for i in range(attributes)]
    domain = Domain(tuple(kinds), "c", tuple(f"c{i}" for i in range(classes)))
    order = ["log-odds", "class-means", "tree-beside-sums", "boosted"]
    steps = []
    for rows in (int(10 ** (2 + power / 40)) for power in range(200)):
        name = pick(replace(AUTO.request(domain, NANO, delta=delta), rows=rows)).name
        if name not in ("joint-tables", "rooted-tables"):
            steps.append(order.index(name))
    assert steps == sorted(steps)
    assert steps[-1] == 3
    assert classes > 2 or set(steps) <= {0, 3}, "the sums of two classes are fitted instead"


def test_auto_does_not_pick_boosted_for_few_rows(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    fill(con, 300, 2)
    forest = fit(con, "t", domain=public(), recipe="auto", epsilon=0.5, delta=1e-5)
    assert not any("gradients" in line for line in forest.guarantee.plan)
    # a noisy figure decides which of the two it is, so δ is spent either way
    assert forest.guarantee.delta == "0.00001"
    pure = fit(con, "t", domain=public(), recipe="greedy-tree", epsilon=0.5, delta=1e-5)
    assert pure.guarantee.delta == "0"


def test_auto_picks_boosted_without_a_delta_for_very_many_rows(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """An effect of two attributes together: random trees find it, one-split trees cannot."""
    right = {}
    for rows in (1500, 40_000):
        fill(con, rows, 2)
        con.execute("UPDATE t SET c = CASE WHEN (a = 'x') = (n > 50) THEN 'c1' ELSE 'c0' END")
        forest = fit(con, "t", domain=public(), recipe="auto", epsilon=1)
        assert any("gradients" in line for line in forest.guarantee.plan) == (rows == 40_000)
        assert forest.guarantee.delta == "0"
        ((hits,),) = forest.predict(con, "t").filter("prediction = c").count("*").fetchall()
        right[rows] = hits / rows
    assert right[40_000] > max(0.9, right[1500])


# turns of bins, sweeps, random trees and their splits, by a signal below each size
SIZES: dict[int, list[tuple[float, tuple[int, int, int, int]]]] = {
    DELTA: [(constants.ENOUGH, (3, 1, 16, 4)), (constants.AMPLE, (4, 2, 64, 4))],
    0: [(3 * constants.AMPLE, (5, 1, 0, 4))],
}


# two classes need a stronger signal with a δ, and a weaker one without
TWO_CLASSES = {
    constants.ENOUGH: PURE * constants.ENOUGH,
    3 * constants.AMPLE: 2 * constants.AMPLE,
}
DEEP_SIZE = {DELTA: (5, 2, 64, 6), 0: (5, 1, 16, 6)}
FINEST_SIZE = {DELTA: (6, 2, 64, 6), 0: (6, 1, 12, 8)}  # from a signal of 10,000 on


@pytest.mark.parametrize("delta", [0, DELTA])
@pytest.mark.parametrize(("classes", "rare"), [(2, 0.5), (2, 0.05), (5, 0.2)])
def test_trees_are_more_and_deeper_with_a_stronger_signal(
    classes: int, rare: float, delta: int
) -> None:
    """With several classes and without a δ, a row changes sums by three times as much, so the
    finest bins need three times the signal.

    With a δ, and for the finest bins, rows count in proportion to the variance of the class:
    4 s (1 - s) of two.
    """
    attributes = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=100) for i in range(8))
    types = {**{each.name: DOUBLE for each in attributes}, "c": VARCHAR}
    domain = Domain(attributes, "c", tuple(f"c{i}" for i in range(classes))).bind(types)
    found = []
    for rows in (int(10 ** (2 + power / 40)) for power in range(240)):
        asked = find("boosted").request(domain, NANO, delta=delta)
        others = np.full(classes - 1, round(rows * (1 - rare) / (classes - 1)))
        counts = np.append(others, round(rows * rare))
        request = adaptation.sized(find("boosted"), asked, counts)
        plan = find("boosted").plan(request)
        bins, sweep, forest = (plan.query(name) for name in ("bins", "sweep", "forest"))
        assert bins
        assert sweep
        trees = forest.times if forest else 0
        size = (len(bins.by_depth), len(sweep.by_depth), trees, request.depth)
        times = 3 if classes > 2 and not delta else 1
        shares = counts / counts.sum()
        mixed = (1 - (shares**2).sum()) / (1 - 1 / classes)
        clear = signal(request) * (mixed if delta else 1)
        limits = TWO_CLASSES if classes == 2 else {}
        below = (size for limit, size in SIZES[delta] if clear < limits.get(limit, limit))
        finest = signal(request) * mixed >= 10 * constants.AMPLE * times
        assert size == next(below, (FINEST_SIZE if finest else DEEP_SIZE)[delta])
        found.append(size)
    assert len(set(found)) == len(SIZES[delta]) + 2


@pytest.mark.parametrize(("delta", "trees", "splits"), [(1e-6, 64, 6), (0, 12, 8)])
@pytest.mark.more
def test_random_trees_have_the_depth_that_the_signal_allows(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    delta: float,
    trees: int,
    splits: int,
) -> None:
    """The first tree has no split, and one of each attribute follows."""
    fill(con, 2000, 2)
    forest = fit(con, "t", domain=public(), recipe="boosted", epsilon=1000, delta=delta)
    attributes = len(public().attributes)
    assert len(forest.trees) == 1 + attributes + trees
    cells = forest.domain.cells
    assert max(tree.depth(cells) for tree in forest.trees[1 + attributes :]) == splits


def test_a_plan_without_bins_has_no_query_for_bins() -> None:
    domain = Domain((Attribute("a", "categorical", ("x", "y")),), "c", ("p", "q"))
    for delta in (0, DELTA):
        request = find("boosted").request(domain, NANO, delta=delta)
        plan = find("boosted").plan(request)
        assert plan.query("bins") is None
        assert plan.fits(NANO, delta)
        account = Accountant(plan, NANO, delta)
        with pytest.raises(AssertionError, match="bins"):
            cut_at_medians([], request, account, Randomness.secure().bits)
