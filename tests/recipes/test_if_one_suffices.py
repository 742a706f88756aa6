"""The recipe that takes the place of others if one attribute classifies nearly all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from dpforest_duckdb import Forest
from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.privacy.amounts import ATTO, NANO, atto_delta
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes import adaptation
from dpforest_duckdb.recipes.bounds_queries import with_windows
from dpforest_duckdb.recipes.ours.auto import AUTO, BOOSTED_OR_LOG_ODDS
from dpforest_duckdb.recipes.strongest_query import clear_cost, strongest_cost, strongest_is_cheap
from dpforest_duckdb.request import Request

BOTH = np.array([6_000, 4_000])  # the rows of each class
DELTAS = [0, atto_delta(1e-5)]


def asked(delta: int = 0, epsilon: int = NANO, k: int = 1) -> Request:
    """A request for six numbers and two classes."""
    made = tuple(Attribute(f"a{n}", "numeric", lower=0, upper=1) for n in range(6))
    domain = Domain(made, "c", ("no", "yes"))
    domain = domain.bind({**{each.name: DOUBLE for each in made}, "c": VARCHAR})
    return BOOSTED_OR_LOG_ODDS.request(domain, epsilon, rows_per_unit=k, delta=delta)


def counted(request: Request, classes: Integers) -> Request:
    return replace(request, rows=int(classes.sum()), histogram=tuple(classes.tolist()))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO])
def test_the_part_of_epsilon_is_one_by_the_root_of_the_rows_in_units_of_noise(
    epsilon: int, k: int
) -> None:
    """Within a thousandth and a sixteenth of ε."""
    for strength, part in ((200, 16), (10_000, 100), (10**8, 1_000)):
        rows = np.array([strength * k * NANO // epsilon, 0])
        request = counted(asked(epsilon=epsilon, k=k), rows)
        assert strongest_cost(request) == pytest.approx(epsilon / part, rel=1e-6)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO])
def test_it_is_cheap_if_a_quarter_of_the_rows_is_rarely_noise_at_a_sixteenth(
    epsilon: int, k: int
) -> None:
    """Laplace noise is beyond x scales on one side in e^(-x) / 2 of all cases: x = ln 50."""
    least = math.ceil(16 * 4 * math.log(50) * k * NANO / epsilon)
    for rows in (1, least - 1, least):
        request = counted(asked(epsilon=epsilon, k=k), np.array([rows, 0]))
        assert strongest_is_cheap(request) == (rows == least)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("delta", DELTAS)
def test_the_noise_is_a_tenth_of_the_rows_outside_the_most_frequent_class(
    k: int, delta: int
) -> None:
    cost = clear_cost(counted(asked(delta, k=k), BOTH))
    assert laplace_deviation(cost, k) == pytest.approx(400, rel=0.01)


@pytest.mark.parametrize("delta", DELTAS)
def test_it_is_not_asked_if_that_costs_more_than_a_sixteenth(delta: int) -> None:
    """Of ε, or of μ² with a δ; the rows are as few as that allows, and one fewer."""
    request = asked(delta)
    most = request.measure.pure_epsilon(request.allowed(request.measure) // 16)
    assert most <= request.epsilon // 16
    least = int(np.ceil(10 * np.sqrt(2) * NANO / most))
    assert 0 < clear_cost(counted(request, np.array([least, least]))) <= most
    assert clear_cost(counted(request, np.array([least - 1, least]))) == 0
    assert clear_cost(counted(request, np.array([9_000, 0]))) == 0
    assert clear_cost(counted(request, np.array([9_000, -9_000]))) == 0


def test_it_costs_at_least_a_thousandth_of_epsilon() -> None:
    assert clear_cost(counted(asked(), BOTH * 10**9)) == NANO // 1000


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(
    ("wrong", "then"), [(-900, "log-odds"), (199, "log-odds"), (200, "boosted")]
)
def test_log_odds_follows_if_little_is_left(delta: int, wrong: int, then: str) -> None:
    found = adaptation.adapted(BOOSTED_OR_LOG_ODDS, asked(delta), BOTH)
    assert found.unsized.preliminary[-1].purpose == Purpose.STRONGEST
    after = adaptation.with_misclassified(found, wrong)
    assert after.recipe.name == then
    if then == "boosted":
        assert after is found


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("k", [1, 3])
def test_log_odds_takes_all_that_is_left_of_epsilon(delta: int, k: int) -> None:
    """The check of bounds costs μ² in boosting with a δ, but ε once log-odds follows."""
    request = asked(delta, epsilon=2 * NANO, k=k)
    found = adaptation.adapted(BOOSTED_OR_LOG_ODDS, request, BOTH * 10)
    after = adaptation.with_misclassified(found, 0)
    plan, purposes = after.plan, {query.purpose for query in after.plan.queries}
    assert {*ROW_COUNTS[:1], "bounds", Purpose.STRONGEST, "tables"} <= purposes
    assert plan.fits(2 * NANO, 0)
    assert 2 * NANO - 10 < plan.epsilon <= 2 * NANO
    assert plan.queries[: len(found.unsized.preliminary)] == found.unsized.preliminary


def test_boosting_stays_if_windows_have_cost_mu_squared() -> None:
    """However little of it: `log-odds` counts its costs in ε, in which these windows have none."""
    for classes in (BOTH, BOTH * 10**7):
        found = adaptation.adapted(BOOSTED_OR_LOG_ODDS, asked(DELTAS[1]), classes)
        narrowed = with_windows(found.unsized, 1, 6, found.rows, GAUSSIAN_DP)
        assert narrowed is not None
        wide = replace(found, unsized=narrowed)
        assert adaptation.with_misclassified(found, 0).recipe.name == "log-odds"
        assert adaptation.with_misclassified(wide, 0) is wide
    pure = adaptation.adapted(BOOSTED_OR_LOG_ODDS, asked(), BOTH)
    narrowed = with_windows(pure.unsized, 1, 6, pure.rows, PURE_DP)
    assert narrowed is not None
    after = adaptation.with_misclassified(replace(pure, unsized=narrowed), 0)
    assert after.recipe.name == "log-odds"
    assert after.plan.fits(NANO, 0)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [NANO // 1000, NANO, 100 * NANO])
def test_no_plan_passes_its_budget(epsilon: int, delta: int) -> None:
    for rows in (-50, 0, 1, 40, 10**4, 10**12):
        for k in (1, 5):
            classes = np.array([rows, 2 * rows])
            found = adaptation.adapted(BOOSTED_OR_LOG_ODDS, asked(delta, epsilon, k), classes)
            assert found.plan.fits(epsilon, delta)
            asks = found.plan.query(Purpose.STRONGEST) is not None
            for wrong in (-(10**6), 0, rows) if asks else ():
                assert adaptation.with_misclassified(found, wrong).plan.fits(epsilon, delta)


def test_it_costs_at_most_a_sixteenth_of_epsilon_whatever_the_delta() -> None:
    """A large δ allows far more μ² than this: the part of it can exceed ε."""
    request = asked(ATTO // 2, epsilon=NANO // 100)
    in_measure = request.measure.pure_epsilon(request.allowed(request.measure) // 16)
    assert in_measure > request.epsilon
    costs = {clear_cost(counted(request, np.array([n, n]))) for n in range(100, 60_000, 100)}
    assert 0 < max(costs) <= request.epsilon // 16


def test_it_is_not_asked_if_a_tiny_delta_allows_less_than_a_thousandth_of_epsilon() -> None:
    assert clear_cost(counted(asked(1, epsilon=10**6 * NANO), BOTH)) == 0


@pytest.mark.parametrize("epsilon", [NANO // 1000, NANO // 30, NANO])
@pytest.mark.parametrize("delta", [ATTO // 2, ATTO // 10, ATTO // 100])
def test_a_large_delta_leaves_log_odds_at_least_half_of_epsilon(delta: int, epsilon: int) -> None:
    """The check of bounds may cost more than that of ε; then boosting stays."""
    for rows in np.geomspace(10, 10**8, 60).astype(int).tolist():
        classes = np.array([rows, rows // 3])
        found = adaptation.adapted(BOOSTED_OR_LOG_ODDS, asked(delta, epsilon), classes)
        if found.plan.query(Purpose.STRONGEST) is None:
            continue
        after = adaptation.with_misclassified(found, 0)
        if after.recipe.name == "log-odds":
            others = [q for q in after.unsized.preliminary if q.purpose not in ROW_COUNTS]
            assert 2 * sum(query.total for query in others) <= epsilon
        assert after.plan.fits(epsilon, delta)
        assert min(cost for query in after.plan.queries for cost in query.by_depth) > 0


@pytest.mark.parametrize("trees", [5, 6])
@pytest.mark.parametrize(
    ("classes", "picked"), [(BOTH * 100, "boosted"), (np.full(3, 800), "tree-beside-sums")]
)
def test_it_is_not_asked_if_fewer_trees_are_requested_than_attributes(
    trees: int, classes: Integers, picked: str
) -> None:
    """`log-odds` would not know the number of trees that were requested."""
    domain = replace(asked().domain, classes=tuple(f"c{n}" for n in range(len(classes))))
    found = adaptation.adapted(AUTO, AUTO.request(domain, NANO, trees=trees), classes)
    assert found.recipe.name == picked
    assert (found.plan.query(Purpose.STRONGEST) is None) == (trees < 6)


@pytest.mark.parametrize(
    ("label", "then"), [("least(i % 3, 1 + i % 2)", "tree-beside-sums"), ("i % 3", "log-odds")]
)
def test_a_run_of_three_classes_follows_the_figure_too(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], label: str, then: str
) -> None:
    """A number that equals the class, and one that tells it only together with another."""
    con.execute(
        "CREATE TABLE made AS SELECT i % 3 AS a, i % 2 AS b, i % 7 / 7 AS x, i % 11 / 11 AS y, "
        f"'c' || {label} AS c FROM range(2000) AS r(i)"
    )
    numbers = [Attribute(name, "numeric", lower=0, upper=2) for name in "abxy"]
    domain = Domain(tuple(numbers), "c", ("c0", "c1", "c2"))
    forest = fit(con, "made", domain=domain, epsilon=1, recipe=AUTO.name)
    assert forest.picked == then
    assert any(line.startswith(Purpose.STRONGEST) for line in forest.guarantee.plan)


@pytest.mark.parametrize("delta", [0, 1e-5])
@pytest.mark.parametrize(("label", "then"), [("a", "log-odds"), ("(a + b) % 2", "boosted")])
def test_a_run_of_the_default_follows_the_figure(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], delta: float,
    label: str, then: str,
) -> None:  # fmt: skip
    con.execute(
        "CREATE TABLE t AS SELECT i % 2 AS a, i // 2 % 2 AS b, i % 7 / 7 AS x, i % 11 / 11 AS y, "
        f"'c' || {label} AS c FROM range(4000) AS r(i)"
    )
    con.execute("CREATE TABLE made AS SELECT a, b, x, y, c FROM t")
    numbers = [Attribute(name, "numeric", lower=0, upper=1) for name in "abxy"]
    domain = Domain(tuple(numbers), "c", ("c0", "c1"))
    forest = fit(con, "made", domain=domain, epsilon=4, delta=delta, recipe=AUTO.name)
    assert forest.picked == then
    assert any(line.startswith(Purpose.STRONGEST) for line in forest.guarantee.plan)
