"""Bins of numeric attributes at private medians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorder import record
from steps import seeded

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.learners import private_bins as medians
from dpforest_duckdb.learners.private_bins import (
    cut_at_medians,
    domain_cut_at_medians,
    on_the_grid,
    to_be_cut,
)
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.gaussian_dp import drawn_cost
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.recipes import find
from dpforest_duckdb.training.evaluate import evaluate


@pytest.mark.parametrize("budget", [10**12, 10**15, ATTO])
def test_a_median_costs_no_more_than_its_budget(budget: int) -> None:
    """The exponential mechanism of pure cost ε costs (π/8)·ε² of μ²."""
    epsilon = GAUSSIAN_DP.drawn_epsilon(budget)
    assert drawn_cost(epsilon) <= budget < drawn_cost(epsilon + 1)
    assert drawn_cost(epsilon) == pytest.approx(np.pi / 8 * (epsilon / NANO) ** 2 * ATTO)
    assert PURE_DP.drawn_epsilon(budget) == budget


def numeric() -> Domain:
    own = Attribute("n", "numeric", lower=0, upper=1000)
    chosen = Attribute("m", "numeric", lower=0, upper=10, bins=3)
    types = {"n": DOUBLE, "m": INTEGER, "c": VARCHAR}
    return Domain((own, chosen), "c", ("p", "q")).bind(types)


def test_private_medians_divide_rows_evenly_at_a_large_budget() -> None:
    domain = numeric()
    assert [a.name for a in to_be_cut(domain)] == ["n"], "bins that the domain chose stay"
    grid = on_the_grid(domain)
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(3, 1, 20_000))
    codes = np.searchsorted(grid.attributes[0].edges, values)
    counts = np.bincount(codes, minlength=grid.attributes[0].cells)
    bits = seeded(1).bits
    cut = domain_cut_at_medians(domain, [counts], [NANO] * 3, 1, bits)
    edges = cut.attributes[0].edges
    assert cut.attributes[1] == domain.attributes[1]
    assert len(edges) == 7
    assert set(edges) <= set(grid.attributes[0].edges)
    shares = np.bincount(np.searchsorted(edges, values)) / len(values)
    assert shares.min() > 0.05  # an eighth each, but for the grid
    one = domain_cut_at_medians(domain, [np.zeros_like(counts)], [NANO] * 3, 1, bits)
    assert len(one.attributes[0].edges) == 7, "an empty table tells nothing and fails nowhere"


@given(
    counts=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    where=st.integers(0, 5),
    low=st.integers(0, 3),
)
def test_a_row_moves_the_balance_of_a_cut_by_one(counts: list[int], where: int, low: int) -> None:
    """It changes one interval only, by at most the sensitivity that the exponents use."""

    def balance(rows: Sequence[int]) -> np.ndarray:
        up_to = np.concatenate([[0], np.cumsum(rows)])
        cuts = np.arange(low + 1, 6)
        return -np.abs((up_to[cuts] - up_to[low]) - (up_to[6] - up_to[cuts]))

    more = list(counts)
    more[where] += 1
    assert set(np.abs(balance(more) - balance(counts)).tolist()) <= ({1} if where >= low else {0})


def test_the_grid_is_counted_in_the_database(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    con.execute("CREATE TABLE s (n DOUBLE, k BOOLEAN)")
    con.execute("INSERT INTO s SELECT 1000 * (i / 5000.0) ** 4, i > 2500 FROM range(5000) r(i)")
    domain = Domain((Attribute("n", "numeric", lower=0, upper=1000),), "k", ("false", "true"))
    forest = fit(con, "s", domain=domain, recipe="boosted", epsilon=20, delta=1e-6)
    edges = np.array(forest.domain.attributes[0].edges, dtype=float)
    assert np.abs(edges - 62.5).min() < 10  # the median, where the class turns
    reached = evaluate(con, forest, "s", ledger=tmp_path / "ledger").accuracy
    assert reached is not None
    assert reached > 0.95


@pytest.mark.parametrize("name", ["boosted", "tree-beside-sums"])
def test_each_attribute_that_is_cut_is_paid_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A row is in every attribute's counts, so each attribute needs a part of its own."""
    numbers = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=999) for i in range(4))
    numbers = (*numbers[:3], replace(numbers[3], bins=5))
    domain = Domain((*numbers, Attribute("a", "categorical", ("x", "y"))), "c", ("p", "q"))
    domain = domain.bind(
        {**dict.fromkeys(["n0", "n1", "n2", "n3"], DOUBLE), "a": VARCHAR, "c": VARCHAR}
    )
    recipe, given = find(name), record(monkeypatch, medians)
    request = replace(recipe.request(domain, NANO), rows=10**6)
    plan = recipe.plan(request)
    query = plan.query("bins")
    assert query is not None
    assert query.times == len(to_be_cut(domain)) == 3
    private = [np.ones(fine.cells, dtype=np.int64) for fine in on_the_grid(domain).attributes]
    cut_at_medians(private, request, Accountant(plan, NANO, 0), seeded().bits)
    # the intervals of a turn hold different rows
    assert sum(call.cost for call in given) == query.total
    counts = sum(each.total for each in plan.queries if each.purpose in ROW_COUNTS)
    assert query.total == pytest.approx(0.14 * (NANO - counts), rel=1e-6)
