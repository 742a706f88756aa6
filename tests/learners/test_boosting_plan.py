"""Boosting: when the default picks it, and in what size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from boosted_rows import DELTA, fill, public
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.learners.boosting import BOOSTING
from dpforest_duckdb.learners.private_bins import (
    cut_at_medians,
)
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto import AUTO, pick
from dpforest_duckdb.recipes.ours.auto_rules import signal, signal_of_two_classes
from dpforest_duckdb.request import Request


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


Size = tuple[int, int, int]  # turns of bins, sweeps, random trees
SIZES: dict[int, list[tuple[float, Size]]] = {  # by a signal below each limit
    DELTA: [(constants.ENOUGH, (3, 1, 16)), (constants.AMPLE, (4, 2, 64))],
    0: [(3 * constants.AMPLE, (5, 1, 0))],
}
TWO_CLASSES = {  # these have other limits
    constants.ENOUGH: signal_of_two_classes(),
    3 * constants.AMPLE: constants.AMPLE,
}
STRONG: dict[int, Size] = {DELTA: (5, 2, 64), 0: (5, 1, 8)}
FINEST: dict[int, Size] = {DELTA: (6, 2, 64), 0: (6, 1, 16)}  # from a signal of 10,000 on

EACH_CASE = pytest.mark.parametrize(
    ("delta", "classes", "rare"),
    [(delta, *case) for delta in (0, DELTA) for case in ((2, 0.5), (2, 0.05), (5, 0.2))],
)


def sized(classes: int, rare: float, delta: int) -> Iterator[tuple[Request, Plan, float]]:
    """Requests for boosting of 100 to 100 million rows, their plans, and how mixed classes are."""
    attributes = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=100) for i in range(8))
    types = {**{each.name: DOUBLE for each in attributes}, "c": VARCHAR}
    domain = Domain(attributes, "c", tuple(f"c{i}" for i in range(classes))).bind(types)
    asked = find("boosted").request(domain, NANO, delta=delta)
    for rows in (int(10 ** (2 + power / 40)) for power in range(240)):
        others = np.full(classes - 1, round(rows * (1 - rare) / (classes - 1)))
        counts = np.append(others, round(rows * rare))
        request = adaptation.sized(find("boosted"), asked, counts)
        shares = counts / counts.sum()
        mixed = float(1 - (shares**2).sum()) / (1 - 1 / classes)
        yield request, find("boosted").plan(request), mixed


@EACH_CASE
def test_trees_are_more_with_a_stronger_signal(delta: int, classes: int, rare: float) -> None:
    """With several classes and without a δ, a row changes sums by three times as much, so the
    finest bins need three times the signal; and steps are shorter, so there are two sweeps.

    With a δ, and for the finest bins, rows count in proportion to the variance of the class:
    4 s (1 - s) of two.
    """
    found = []
    for request, plan, mixed in sized(classes, rare, delta):
        bins, sweep, forest = (plan.query(name) for name in ("bins", "sweep", "forest"))
        assert bins
        assert sweep
        again = plan.query("sweep again")
        size = (len(bins.by_depth), 2 if again else 1, forest.times if forest else 0)
        assert (sweep.by_depth, sweep.times) == ((sweep.total // 8,), 8)
        if again:  # stated is the noise if all attributes are fitted again
            assert again.total == pytest.approx(sweep.total, abs=8)
            stated = [BOOSTING.deviation(query, request) for query in (sweep, again)]
            assert stated[1] == pytest.approx(stated[0], rel=1e-6)
        times = 3 if classes > 2 and not delta else 1
        clear = signal(request) * (mixed if delta else 1)
        limits = TWO_CLASSES if classes == 2 else {}
        below = (size for limit, size in SIZES[delta] if clear < limits.get(limit, limit))
        finest = signal(request) * mixed >= 10 * constants.AMPLE * times
        turns, sweeps, trees = next(below, (FINEST if finest else STRONG)[delta])
        if classes > 2 and not delta:
            sweeps = 2
        assert size == (turns, sweeps, trees)
        if forest:
            few = delta and trees < 64
            part = 0.5 if not few else 0.35 if classes == 2 else 0.2
            fitted = forest.total + sweep.total + (again.total if again else 0)
            assert forest.total / fitted == pytest.approx(part, abs=0.001)
        found.append(size)
    assert len(set(found)) == len(SIZES[delta]) + 2


@EACH_CASE
def test_leaves_of_random_trees_hold_six_times_the_noise(
    delta: int, classes: int, rare: float
) -> None:
    """A row adds at most 1 to the sums of two classes, 3 to those of several in L1, √2 in L2."""
    depths = set()
    for request, plan, mixed in sized(classes, rare, delta):
        forest = plan.query("forest")
        if not forest:
            continue
        (cost,) = set(forest.by_depth)
        if delta:
            noise = math.sqrt((1 if classes == 2 else 2) * ATTO / cost)
        else:
            noise = math.sqrt(2) * (1 if classes == 2 else 3) * NANO / cost
        held = request.rows * mixed / 2**request.depth / noise
        assert held < 6 * 1.42 or request.depth == (6 if delta else 8)
        assert held > 6 / 1.42 or request.depth == 1
        depths.add(request.depth)
    assert len(depths) == max(depths) - min(depths) + 1 > 1


@pytest.mark.parametrize(("delta", "trees", "splits"), [(1e-6, 64, 6), (0, 16, 8)])
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
