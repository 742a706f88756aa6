"""The two counts of the rows: when the second is asked, what each costs, what comes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import NoNoise, record
from shell import dpforest
from steps import adapted, spending

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.gaussian_dp import pure_epsilon
from dpforest_duckdb.privacy.measure import PURE_DP
from dpforest_duckdb.privacy.noise import ExactNoise, laplace_deviation
from dpforest_duckdb.privacy.plan import ROW_COUNTS, Plan, PlanError, PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.ours.auto_rules import choice_part
from dpforest_duckdb.recipes.row_count_queries import count_queries, left
from dpforest_duckdb.request import Request

OURS = (
    "auto", "log-odds", "class-means", "tree-beside-sums", "joint-tables", "rooted-tables",
    "boosted",
)  # fmt: skip


def public(classes: int = 2) -> Domain:
    """Two numbers and a yes-or-no attribute."""
    numbers = [Attribute(name, "numeric", lower=0, upper=9) for name in "xy"]
    labels = tuple(f"c{label}" for label in range(classes))
    domain = Domain((*numbers, Attribute("z", "categorical", ("n", "y"))), "c", labels)
    return domain.bind({"x": DOUBLE, "y": DOUBLE, "z": VARCHAR, "c": VARCHAR})


def asked(rows: int, classes: int = 2, epsilon: int = NANO, k: int = 1, delta: int = 0) -> Request:
    """What a run of the default is asked to do; `rows` are a first noisy number, or 0."""
    request = find("auto").request(public(classes), epsilon, rows_per_unit=k, delta=delta)
    return replace(
        request, preliminary=count_queries(request, even(rows, classes) if rows else None)
    )


def even(rows: int, classes: int) -> Any:
    """Counts of classes that are equally frequent."""
    return np.full(classes, rows / classes)


def costs(queries: Sequence[PlannedQuery]) -> list[int]:
    return [query.total for query in queries if query.purpose in ROW_COUNTS]


@settings(max_examples=300, deadline=None)
@given(
    rows=st.integers(0, 12).map(lambda power: 10**power) | st.integers(1, 10**6),
    classes=st.integers(2, 6),
    k=st.integers(1, 9),
    epsilon=st.integers(10**4, 100 * NANO),
    delta=st.sampled_from([0, 0, 1, ATTO // 10**9, ATTO // 10**5]),
)
@pytest.mark.more
def test_the_second_count_is_asked_if_the_first_is_too_noisy_and_costs_what_it_takes(
    rows: int, classes: int, k: int, epsilon: int, delta: int
) -> None:
    """Too noisy: above a 30th of the rows of a class. As much as it takes is at most 4 or 10 % of
    ε, or half of μ², for both.
    """
    request = asked(rows, classes, epsilon, k, delta)
    most = epsilon // 25 if classes == 2 else epsilon // 10
    if request.squared_mu:
        most = min(most, pure_epsilon(request.squared_mu // 2))
    assert costs(count_queries(asked(0, classes, epsilon, k, delta))) == [
        epsilon // 400, most - epsilon // 400,
    ]  # fmt: skip
    first, *second = costs(request.preliminary)
    assert first == epsilon // 400
    assert left(request, PURE_DP) == epsilon - sum(costs(request.preliminary)) >= epsilon - most
    if request.squared_mu:
        assert sum(query.squared_mu for query in request.preliminary) <= request.squared_mu // 2

    enough = rows / classes / 30  # a standard deviation, in rows
    noise = [math.sqrt(2) * k * NANO / cost for cost in (first, *second)]
    if not second:
        assert noise[0] <= enough * (1 + 1e-9)
    else:
        assert noise[0] > enough
        rounding = 2 / second[0] + 1 / rows + 1e-9  # costs and rows are whole numbers
        assert noise[1] >= enough * (1 - rounding)
        if sum(costs(request.preliminary)) < most:
            assert noise[1] <= enough * (1 + rounding)


@pytest.mark.parametrize(
    ("rows", "second"),
    [
        # √2 · 30 · 2 classes / rows; the first costs ε / 400
        (1, 0.0375), (2_262, 0.0375), (2_263, 0.037496), (10_000, 0.008485), (33_941, 0.0025),
        (33_942, 0), (10**12, 0),
    ],
)  # fmt: skip
def test_few_rows_are_counted_for_4_percent_and_many_for_a_400th(rows: int, second: float) -> None:
    queries = asked(rows).preliminary
    assert [query.purpose for query in queries] == list(ROW_COUNTS)[: 2 if second else 1]
    assert sum(costs(queries)) / NANO == pytest.approx(0.0025 + second, abs=1e-6)


def followed(
    private: Integers, noise: object, k: int = 1, recipe: str = "auto", delta: int = 0
) -> tuple[Request, Accountant]:
    """The request that follows from private counts, at ε = 1, and its account."""
    chosen = find(recipe)
    request = chosen.request(public(len(private)), NANO, rows_per_unit=k, delta=delta)
    account = Accountant(chosen.plan(request), NANO, delta)
    return adapted(private, chosen, request, account, noise)[1], account  # type: ignore[arg-type]


def variance(epsilon: int, k: int) -> float:
    """Of discrete Laplace noise: 2p / (1 - p)² at p = e^(-ε/k)."""
    p = math.exp(-epsilon / NANO / k)
    return 2 * p / (1 - p) ** 2


@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("recipe", OURS)
def test_both_counts_are_of_the_same_rows_and_weigh_by_their_inverse_variances(
    recipe: str, k: int, delta: int
) -> None:
    private = np.array([3000, 2000, 1000])
    noise = NoNoise(np.array([900, -300, 600]), np.array([-9, 15, -30]))
    request, account = followed(private, noise, k, recipe, delta)
    shares = np.maximum([3900, 1700, 1600], math.sqrt(2) * k * 400)
    of_class = 7200 / math.sqrt((shares.sum() / shares).sum())
    second = math.floor(math.sqrt(2) * 30 * k / of_class * NANO)
    planned = [NANO // 400, second]
    assert [call.price for call in noise.given] == [(cost, k) for cost in planned]
    assert all((call.private == private).all() for call in noise.given)
    assert costs(account.plan.queries) == costs(spending(account).queries) == planned
    exact = [1 / variance(cost, k) for cost in planned]
    mean = (np.array(noise.noise) * np.array(exact)[:, None]).sum(axis=0) / sum(exact)
    assert abs(np.array(request.histogram) - private - mean).max() <= 0.5
    assert account.plan.row_noise(k) == pytest.approx(sum(exact) ** -0.5)


def test_a_rare_class_is_counted_as_clearly_as_its_part_of_the_log_loss() -> None:
    """Noise σ in counts c of n rows costs Σ σ²/(2·c·n), as if classes were equally frequent."""
    request = find("auto").request(public(3), NANO)
    counts = np.array([20_000, 4_000, 1_000])
    (_, again) = count_queries(request, counts)
    noise, rows = math.sqrt(2) * NANO / again.total, counts.sum()
    loss = (noise**2 / 2 / counts / rows).sum()
    assert loss == pytest.approx((1 / 30) ** 2 / 2, rel=1e-3)
    # a class that the noise of the first count, 566 rows, may hide counts as that many
    hidden = [count_queries(request, np.array([20_000, 5_000, rare])) for rare in (-900, 0, 565)]
    costs_of = [costs(queries)[1] for queries in hidden]
    assert max(costs_of) - min(costs_of) < costs_of[0] / 10
    assert min(costs_of) > 1.2 * again.total
    assert len(count_queries(request, even(250_000, 3))) == 1


@pytest.mark.parametrize("recipe", OURS)
def test_a_first_count_that_is_clear_is_the_only_one(recipe: str) -> None:
    private = np.array([300_000, 200_000])
    noise = NoNoise(np.array([900, -300]))
    request, account = followed(private, noise, recipe=recipe)
    (asked,) = noise.given
    assert asked.price == (NANO // 400, 1)
    assert (asked.private == private).all()
    assert request.histogram == (300_900, 199_700)
    assert costs(account.plan.queries) == [NANO // 400]
    assert account.plan.row_noise(1) == pytest.approx(variance(NANO // 400, 1) ** 0.5)


@pytest.mark.more
def test_the_mean_of_both_counts_has_the_noise_that_the_plan_states() -> None:
    private, noise = np.array([400, 200]), ExactNoise(SecureBits())
    parts = []
    for _ in range(1500):
        request, account = followed(private, noise, k=20)
        assert account.plan.query(Purpose.ROWS_AGAIN)
        parts.append((np.array(request.histogram) - private) / account.plan.row_noise(20))
    assert np.std(parts) == pytest.approx(1, rel=0.1)


def test_counts_of_a_huge_epsilon_are_averaged_though_their_noise_is_none() -> None:
    """With a hundred classes and one row, a first count may be exact and yet too noisy."""
    epsilon = 10**6 * NANO
    for classes, k in ((2, 1), (100, 1), (100, 3)):
        chosen = find("auto")
        request = chosen.request(public(classes), epsilon, rows_per_unit=k)
        account = Accountant(chosen.plan(request), epsilon, 0)
        private = np.array([1] + [0] * (classes - 1))
        noise = ExactNoise(SecureBits())
        _, settled = adapted(private, chosen, request, account, noise)
        assert settled.histogram == tuple(private.tolist())
        assert (account.plan.query(Purpose.ROWS_AGAIN) is None) == (classes == 2)


@pytest.mark.parametrize("epsilon", [1, 9, 24, 400])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_tiniest_budgets_have_a_first_count(epsilon: int, classes: int) -> None:
    """So that a run is refused for it, and does not end without one."""
    (first, *_) = count_queries(find("auto").request(public(classes), epsilon))
    assert (first.purpose, first.total) == (Purpose.ROWS, 1)


def test_counts_that_were_asked_stay_in_every_later_plan() -> None:
    """And a second one that was not asked may go."""
    recipe = find("boosted")
    request = recipe.request(public(), NANO, delta=ATTO // 10**5)
    once, twice = (
        replace(request, preliminary=count_queries(request, even(n, 2))) for n in (10**6, 10**4)
    )
    account = Accountant(recipe.plan(request), NANO, request.delta)
    account.spend(Purpose.ROWS)
    account.replan(recipe.plan(once))
    account.replan(recipe.plan(twice))
    account.spend(Purpose.ROWS_AGAIN)
    dearer = replace(request, preliminary=count_queries(request, even(9_999, 2)))
    changed = (twice.preliminary[0], replace(twice.preliminary[1], by_depth=(1,)))
    for other in (once, request, dearer, replace(request, preliminary=changed)):
        with pytest.raises(PlanError):
            account.replan(recipe.plan(other))
    with pytest.raises(PlanError):
        account.replan(Plan(recipe.plan(twice).queries[1:]))
    account.replan(recipe.plan(twice))
    with pytest.raises(PlanError):
        account.spend(Purpose.ROWS_AGAIN)


@pytest.mark.parametrize("epsilon", [1, 30, 1000, 10**6])
def test_with_a_delta_the_counts_cost_at_most_half_of_the_budget(epsilon: int) -> None:
    """A part of a large ε, or beside a tiny δ, is a larger part of μ²."""
    request = find("boosted").request(public(3), epsilon * NANO, delta=1)
    for rows in (None, even(9, 3)):
        queries = count_queries(request, rows)
        assert 0 < sum(query.squared_mu for query in queries) <= request.squared_mu / 2


@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
@pytest.mark.parametrize("recipe", OURS)
def test_no_number_of_rows_makes_a_plan_dearer_or_protects_fewer_rows_of_a_unit(
    recipe: str, delta: int
) -> None:
    chosen = find(recipe)
    for classes, epsilon in ((2, NANO), (3, NANO // 50), (3, 30 * NANO)):
        request = chosen.request(public(classes), epsilon, delta=delta, rows_per_unit=2)
        for rows in (0, *(10**power // 7 for power in range(2, 19))):
            found = adaptation.adapted(chosen, request, np.full(classes, rows // classes))
            plan, settled = found.plan, found.request
            assert plan.fits(epsilon, delta)
            assert settled.rows_per_unit == 2, "which scales the noise"
            assert plan.queries[: len(settled.preliminary)] == settled.preliminary
            counts = [query.purpose for query in plan.queries if query.purpose in ROW_COUNTS]
            assert counts in ([Purpose.ROWS], [Purpose.ROWS, Purpose.ROWS_AGAIN])


@pytest.mark.parametrize(("k", "epsilon"), [(1, NANO), (4, NANO), (1, NANO // 10)])
def test_a_choice_costs_a_tenth_until_rows_are_many_and_then_falls(k: int, epsilon: int) -> None:
    """With 1/√(n·ε/k) from 1,000 on, to a thousandth."""

    def part(strength: float) -> Fraction:
        return choice_part(
            replace(asked(0, 3, epsilon, k), rows=int(strength * k * NANO / epsilon))
        )

    assert choice_part(asked(0, 3, epsilon, k)) == Fraction(1, 10), "n is unknown"
    assert [part(n) for n in (1, 999, 1000)] == [Fraction(1, 10)] * 3
    assert part(4000) == Fraction(1, 20)
    assert part(100_000) == Fraction(1, 100)
    assert [part(n) for n in (10**7, 10**8, 10**15)] == [Fraction(1, 1000)] * 3
    falling = [part(1000 * 1.5**power) for power in range(30)]
    assert falling == sorted(falling, reverse=True)


@pytest.mark.parametrize("recipe", ["rooted-tables", "tree-beside-sums", "class-means"])
def test_private_choices_cost_their_part(recipe: str) -> None:
    """At n·ε = 4,000, a twentieth: of ε below roots, each of which costs half of that; else of what
    the counts of the rows leave.
    """
    chosen, rooted = find(recipe), recipe == "rooted-tables"
    names = [f"a{i}" for i in range(5 if rooted else 40)]  # products of 40 have too much noise
    number = Attribute("a", "numeric", lower=0, upper=1)
    one = Attribute("a", "categorical", ("n", "y")) if rooted else number
    domain = Domain(tuple(replace(one, name=name) for name in names), "c", ("p", "q", "r"))
    types = dict.fromkeys(names, VARCHAR if rooted else DOUBLE)
    request = replace(chosen.request(domain.bind(types | {"c": VARCHAR}), NANO), rows=4000)
    plan = chosen.plan(replace(request, preliminary=count_queries(request, even(4000, 3))))
    whole = NANO if rooted else NANO - sum(costs(plan.queries))
    mixture, root = plan.query("mixture"), plan.query("root")
    assert mixture is not None
    assert mixture.total == whole // 20
    assert (root is not None) == rooted
    assert root is None or set(root.by_depth) == {mixture.total // 2}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        con.execute("CREATE TABLE t (x DOUBLE CHECK (x BETWEEN 0 AND 9), y BOOLEAN)")
        con.execute("INSERT INTO t SELECT i % 10, i % 10 < 5 FROM range(2_000) AS r(i)")
    return tmp_path / "d.duckdb"


def train(db: Path, *more: str) -> list[str]:
    words = ["train", "--db", str(db), "--table", "t", "--target", "y", "--privacy-unit", "row"]
    return [*words, "--epsilon", "1", "--name", "m", *more]


def test_a_dry_run_says_what_a_second_count_costs_at_most(db: Path) -> None:
    shown = dpforest(*train(db, "--dry-run")).text
    once, again = (line for line in shown.splitlines() if line.split()[:2] == ["any", "auto"])
    for word in (" rows ", "ε = 0.0025 ", f"{laplace_deviation(NANO // 400, 1):.3g}"):
        assert word in once
    for word in (" rows again ", "ε = 0.0375 at most", "37.7 at least"):
        assert word in again
    assert "rows again: a second count of the rows, made only if the first is too noisy" in shown
    assert shown.count("rows again ") == 1, "once for all numbers of rows"
    greedy = dpforest(*train(db, "--dry-run", "--recipe", "greedy-tree")).text
    assert Purpose.ROWS_AGAIN not in greedy
    plan = dpforest(*train(db, "--dry-run", "--json")).facts["plan"]
    assert [(query["purpose"], query["epsilon"]) for query in plan][:2] == [
        (Purpose.ROWS, [0.0025]), (Purpose.ROWS_AGAIN, [0.0375]),
    ]  # fmt: skip


def test_a_model_shows_both_counts_and_what_they_cost(db: Path) -> None:
    assert dpforest(*train(db)).code == 0
    shown = dpforest("models", "show", "m", "--db", str(db)).text
    assert "rows: discrete Laplace, ε = 0.0025" in shown
    assert "rows again: discrete Laplace, ε = 0.0" in shown
    pytest.importorskip("altair")
    page = db.parent / "m.html"
    assert dpforest("report", "--db", str(db), "--model", "m", "--out", str(page)).code == 0
    text = page.read_text(encoding="utf-8")
    assert "count the rows of each class" in text
    assert "count them again, with less noise" in text


def test_a_run_gives_both_counts_the_rows_of_its_table(
    db: Path, monkeypatch: pytest.MonkeyPatch, fit: Callable[..., Forest]
) -> None:
    given = record(monkeypatch)
    with duckdb.connect(str(db)) as con:
        plan = fit(con, "t", target="y", privacy_unit="row").guarantee.plan
    paid = [int(Fraction(line.split(" = ")[1]) * NANO) for line in plan[:2]]
    assert [call.price for call in given[:2]] == [(cost, 1) for cost in paid]
    assert [call.private.tolist() for call in given[:2]] == [[1000, 1000]] * 2
    assert paid[0] == NANO // 400 < paid[1]
