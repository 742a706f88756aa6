"""Runs of class means give mechanisms what their plans say, whichever model they choose."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from mixed_domains import LABELS, numbers
from recorder import Call, record
from steps import spending

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.engine.base import POINTS
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.learners.strongest_attribute import coarse, misclassified
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO, atto_delta
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.gaussian_dp import drawn_epsilon
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.privacy.selection import EXPONENTIAL, Mechanism
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours.auto import MEANS_OR_LOG_ODDS
from dpforest_duckdb.splits import choose
from dpforest_duckdb.splits.positions import REACH
from dpforest_duckdb.training import phases
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.prepare import prepare

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))

import generated


@dataclass
class Spent:
    """What reached the mechanisms, and the accounts."""

    given: list[Call]
    accounts: list[Accountant]

    def by(self, mechanism: str) -> list[Call]:
        return [call for call in self.given if call.mechanism == mechanism]


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    found = Spent(record(monkeypatch, choose), [])

    class Kept(Accountant):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            found.accounts.append(self)

    monkeypatch.setattr(phases, "Accountant", Kept)
    return found


@pytest.mark.parametrize(("epsilon", "k"), [(0.2, 1), (9, 1), (9, 3)])
def test_the_noise_is_given_what_the_plan_says(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], spent: Spent, epsilon: float, k: int
) -> None:
    """Squares at a small ε, products at a large one."""
    con.execute(
        "CREATE TABLE t AS SELECT i % 71 AS x, i % 13 AS y, 'abcdefg'[1 + i % 7] AS z, "
        f"'pqr'[1 + i % 3] AS c, i // {k} AS u FROM range(900) AS r(i)"
    )
    numbers = [Attribute(name, "numeric", lower=0, upper=70, nullable=False) for name in "xy"]
    kinds = (*numbers, Attribute("z", "categorical", tuple("abcdefg"), nullable=False))
    forest = fit(
        con, "t", domain=Domain(kinds, "c", LABELS), recipe="class-means", epsilon=epsilon,
        privacy_unit="u", rows_per_unit=k,
    )  # fmt: skip
    (account,) = spent.accounts
    plan = account.plan
    costs = {query.purpose: query.by_depth[0] for query in plan.queries}
    assert [call.price for call in spent.by("laplace")] == [
        (costs[purpose], bound)
        for purpose, bound in (("rows", k), ("rows again", k), ("bounds", 2 * k))
        if purpose in costs
    ]
    drawn = [(costs["window"], k)] * 2
    if epsilon > 1:
        second = ([1] * 45, costs["products"], k * REACH**2)
    else:
        second = ([1] * 9, costs["squares"], k * REACH**2)
    if "mixture" in costs:
        drawn.append((costs["mixture"], k * POINTS))
    joint = [(list(call.blocks), *call.price) for call in spent.by("joint")]
    assert joint == [([1, 1, 7], costs["means"], k * REACH), second]
    assert [call.price for call in spent.by("exponents")] == drawn
    assert all(call.monotone for call in spent.by("exponents"))
    assert spending(account).epsilon == plan.epsilon <= epsilon * NANO
    assert plan.query("window").total == 2 * costs["window"]  # type: ignore[union-attr]
    assert forest.guarantee.plan == plan.lines()


@pytest.mark.parametrize(("epsilon", "k"), [(0.2, 1), (9, 1), (9, 3)])
def test_with_a_delta_the_noise_of_many_attributes_is_gaussian(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], spent: Spent, epsilon: float,
    k: int, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """And windows are drawn by the exponential mechanism."""
    mechanisms, draw = list[Mechanism](), Mechanism.draw
    monkeypatch.setattr(
        Mechanism, "draw", lambda self, *given: mechanisms.append(self) or draw(self, *given)
    )
    names = [f"x{i}" for i in range(24)]
    columns = ", ".join(f"i * {3 + i} % 71 AS {name}" for i, name in enumerate(names))
    con.execute(
        f"CREATE TABLE t AS SELECT {columns}, 'pqr'[1 + i % 3] AS c, i // {k} AS u "
        "FROM range(3000) AS r(i)"
    )
    kinds = [Attribute(name, "numeric", lower=0, upper=70, nullable=False) for name in names]
    fit(
        con, "t", domain=Domain(tuple(kinds), "c", LABELS), recipe="class-means", epsilon=epsilon,
        delta=1e-5, privacy_unit="u", rows_per_unit=k,
    )  # fmt: skip
    (account,) = spent.accounts
    plan = account.plan
    assert plan.uses_delta
    assert plan.fits(int(epsilon * NANO), atto_delta(1e-5))
    costs = {query.purpose: query.by_depth[0] for query in plan.queries}
    second = "products" if epsilon > 1 else "squares"
    figures = 24 * 25 // 2 if epsilon > 1 else 24
    assert [call.price for call in spent.by("gaussian")] == [
        (costs["means"], 24 * (k * REACH) ** 2),
        (costs[second], figures * (k * REACH**2) ** 2),
    ]
    assert not spent.by("joint")
    drawn = [(drawn_epsilon(costs["window"]), k)] * 24
    if "mixture" in costs:
        drawn.append((costs["mixture"], k * POINTS))
    assert [call.price for call in spent.by("exponents")] == drawn
    assert mechanisms[:24] == [EXPONENTIAL] * 24
    window = plan.query("window")
    assert window is not None
    assert (window.total, window.measure) == (24 * costs["window"], GAUSSIAN_DP)


@pytest.fixture(scope="module")
def weak() -> Iterator[tuple[duckdb.DuckDBPyConnection, Domain]]:
    """Seven classes, 18 weak numbers, units of three rows; one attribute says nearly all."""
    case = generated.many_weak(1_200)
    with duckdb.connect() as con:
        case.write(con, "weak")
        con.execute("ALTER TABLE weak ADD COLUMN u INTEGER")
        con.execute("UPDATE weak SET u = rowid // 3")
        con.execute("CREATE TABLE one AS SELECT *, class * (rowid % 5 > 0)::INT AS same FROM weak")
        yield con, case.domain


@pytest.mark.parametrize(("table", "then"), [("weak", "means"), ("one", "tables")])
def test_auto_takes_class_means_unless_one_attribute_suffices(
    weak: tuple[duckdb.DuckDBPyConnection, Domain], fit: Callable[..., Forest], spent: Spent,
    tmp_path: Path, table: str, then: str,
) -> None:  # fmt: skip
    con, domain = weak
    if table == "one":
        same = Attribute("same", "numeric", lower=0, upper=6)
        domain = replace(domain, attributes=(*domain.attributes, same))
    forest = fit(con, table, domain=domain, epsilon=3, privacy_unit="u", rows_per_unit=3)
    (account,) = spent.accounts
    purposes = [query.purpose for query in account.plan.queries]
    assert then in purposes
    assert ("means" in purposes) == (table == "weak")
    assert forest.guarantee.plan == account.plan.lines()
    costs = {purpose: account.plan.query(purpose) for purpose in purposes}
    assert Purpose.STRONGEST in purposes
    preliminary = (*ROW_COUNTS, Purpose.BOUNDS, Purpose.STRONGEST)
    first = [purpose for purpose in purposes if purpose in preliminary]
    assert [call.price for call in spent.by("laplace")[: len(first)]] == [
        (costs[purpose].total, 3 * (18 if purpose == "bounds" else 1)) for purpose in first
    ]
    assert spending(account).epsilon <= 3 * NANO
    assert evaluate(con, forest, table, ledger=tmp_path / "ledger").accuracy > 0.7


def test_a_number_that_equals_one_of_many_classes_suffices() -> None:
    same = Attribute("same", "numeric", lower=0, upper=19, type=DOUBLE)
    domain = Domain((same,), "c", tuple(f"c{i}" for i in range(20)))
    (attribute,) = coarse(domain.bind({"same": DOUBLE, "c": VARCHAR})).attributes
    cells = np.searchsorted(np.array(attribute.edges, dtype=float), np.arange(20))
    table = np.zeros((attribute.cells, 20), dtype=np.int64)
    np.add.at(table, (cells, np.arange(20)), 100)
    assert misclassified([table], NANO, 1, ExactNoise(SecureBits())) < 1_000


def test_with_a_delta_class_means_are_taken_where_boosting_does_not_pay(
    weak: tuple[duckdb.DuckDBPyConnection, Domain], fit: Callable[..., Forest], spent: Spent
) -> None:
    con, domain = weak
    con.execute("CREATE TABLE again AS FROM weak")  # with a ledger of its own
    forest = fit(con, "again", domain=domain, epsilon=2, delta=1e-5)
    (account,) = spent.accounts
    assert account.plan.query(Purpose.STRONGEST)
    assert account.plan.query("means")
    assert account.plan.uses_delta
    assert account.plan.fits(2 * NANO, atto_delta(1e-5))
    assert forest.guarantee.delta == "0.00001"


def alternated(con: duckdb.DuckDBPyConnection, ledger: Path, rows: int, **options: Any) -> Forest:
    """Trained on rows of which "text" gives the class."""
    con.execute(
        "CREATE TABLE t AS SELECT i % 90 AS x0, i % 7 AS x1, i % 31 AS x2, "
        f"'abcdef'[i % 5 + 1] AS text, 'c' || i % 5 AS c, i // 5 AS u FROM range({rows}) AS r(i)"
    )
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        run = prepare(
            con, "t", domain=numbers(5), recipe="class-means", seed=1, ledger=ledger, **options
        )
    return replace(run, recipe=MEANS_OR_LOG_ODDS).execute()


@pytest.mark.parametrize(("rows", "epsilon"), [(0, 0.001), (3, 1), (600, 0.0001)])
def test_few_rows_and_a_tiny_budget_end_no_run(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, spent: Spent, rows: int, epsilon: float
) -> None:
    options = {"epsilon": epsilon, "privacy_unit": "u", "rows_per_unit": 5}
    forest = alternated(con, tmp_path / "ledger", rows, **options)
    (account,) = spent.accounts
    assert spending(account).epsilon == account.plan.epsilon <= epsilon * NANO
    assert forest.guarantee.plan == account.plan.lines()
    first = account.plan.queries[:3]
    assert [query.purpose for query in first] == [*ROW_COUNTS, Purpose.STRONGEST]
    assert sum(query.total for query in first[:2]) <= epsilon * NANO / 10
    assert [call.price for call in spent.by("laplace")[:3]] == [(q.total, 5) for q in first]
