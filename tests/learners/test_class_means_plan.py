"""Which queries class means plan, and that no plan costs more than its budget."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from mixed_domains import LABELS, MIXED, NAMES, numbers

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.ours.auto import MEANS_OR_LOG_ODDS
from dpforest_duckdb.recipes.ours.constants import AMPLE, CLEAN
from dpforest_duckdb.splits.positions import FEW_CELLS, has_window
from dpforest_duckdb.training.prepare import prepare


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.0000001"])
def test_a_budget_that_is_too_small_is_refused_with_a_delta_too(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, epsilon: str
) -> None:
    names = [f"x{i}" for i in range(20)]
    con.execute(
        f"CREATE TABLE t AS SELECT {', '.join(f'i AS {name}' for name in names)}, 'p' AS c "
        "FROM range(9) AS r(i)"
    )
    kinds = [Attribute(name, "numeric", lower=0, upper=70) for name in names]
    with pytest.raises(DpforestError, match="epsilon is too small"):
        prepare(
            con, "t", domain=Domain(tuple(kinds), "c", LABELS), recipe="class-means",
            privacy_unit="row", epsilon=epsilon, delta="0.00001", ledger=tmp_path / "ledger",
        )  # fmt: skip


def test_a_huge_delta_debits_no_more_than_was_asked_for(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """A choice in a plan in μ² has an ε of its own, which may be above the requested one."""
    names = [f"x{i}" for i in range(20)]
    columns = ", ".join(f"i % {3 + i} AS {name}" for i, name in enumerate(names))
    con.execute(f"CREATE TABLE t AS SELECT {columns}, 'pqr'[1 + i % 3] AS c FROM range(9) AS r(i)")
    kinds = [Attribute(name, "numeric", lower=0, upper=70) for name in names]
    run = prepare(
        con, "t", domain=Domain(tuple(kinds), "c", LABELS), recipe="class-means",
        privacy_unit="row", epsilon="0.001", delta="0.01", ledger=tmp_path / "ledger",
    )  # fmt: skip
    assert run.plan.uses_delta
    assert run.plan.epsilon > run.request.epsilon
    assert run.cost == run.request.epsilon == NANO // 1000


def test_a_delta_is_used_where_it_makes_less_noise() -> None:
    """Gaussian noise grows with the root of the number of attributes, joint noise linearly."""
    used = []
    for attributes in (2, 5, 16, 64):
        kinds = [Attribute(f"x{i}", "numeric", lower=0, upper=100) for i in range(attributes)]
        domain = Domain(tuple(kinds), "c", tuple("abcdefgh"))
        request = find("class-means").request(domain, NANO, delta=ATTO // 10**5)
        request = adaptation.sized(find("class-means"), request, np.full(8, 10_000))
        plan = find("class-means").plan(request)
        assert plan.query("products")
        used.append(plan.uses_delta)
    assert used == [False, False, True, True]


def test_only_numbers_of_more_than_a_few_cells_have_a_window() -> None:
    few = Attribute("few", "numeric", lower=0, upper=1, bins=FEW_CELLS)
    domain = Domain((*MIXED, few), "label", LABELS)
    bound = domain.bind(
        {**dict.fromkeys(NAMES, VARCHAR), "number": DOUBLE, "few": DOUBLE, "label": VARCHAR}
    )
    assert [a.name for a in bound.attributes if has_window(a)] == ["number"]
    recipe = find("class-means")
    for attributes, times in ((bound.attributes, 1), (bound.attributes[1:], 0)):
        plan = recipe.plan(recipe.request(replace(bound, attributes=attributes), NANO))
        window = plan.query("window")
        assert (window.times if window else 0) == times


def test_products_are_released_from_where_their_noise_is_small_enough() -> None:
    """The noise of the plan, in parts of all rows. Otherwise a weight is chosen, from AMPLE on."""
    recipe = find("class-means")
    columns = {f"x{i}": DOUBLE for i in range(16)}
    attributes = tuple(Attribute(name, "numeric", lower=0, upper=1) for name in columns)
    domain = Domain(attributes, "c", tuple("abc")).bind(columns | {"c": VARCHAR})
    request = replace(recipe.request(domain, NANO), rows=10**6)
    query = recipe.plan(request).query("products")
    assert query is not None
    enough = math.ceil((recipe.learner.deviation(query, request) or 0) / CLEAN)
    assert recipe.plan(replace(request, rows=enough)).query("products")
    assert not recipe.plan(replace(request, rows=enough - 1)).query("products")

    def purposes(rows: int) -> list[str]:
        return [query.purpose for query in recipe.plan(replace(request, rows=rows)).queries]

    few = [*ROW_COUNTS, "window", "squares", "mixture", "means"]
    assert purposes(AMPLE) == few != purposes(enough)
    assert purposes(AMPLE - 1) == [*ROW_COUNTS, "window", "squares", "means"]
    assert "products" not in purposes(0)  # before the number of rows is known


def test_pairs_of_very_many_positions_are_not_summed() -> None:
    """Each of 300 values has a position."""
    values = tuple(f"v{n}" for n in range(300))
    domain = Domain((Attribute("x", "categorical", values),), "c", tuple("abc"))
    recipe = find("class-means")
    request = replace(recipe.request(domain.bind({"x": VARCHAR, "c": VARCHAR}), NANO), rows=10**9)
    assert recipe.plan(request).query("squares")
    assert not recipe.plan(request).query("products")


@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
@pytest.mark.parametrize("epsilon", [3_000, NANO // 1000, NANO, 100 * NANO])
def test_no_plan_passes_its_budget_whatever_the_rows_are(epsilon: int, delta: int) -> None:
    """Of class means, and of the alternative after the query that decides between them."""
    recipe, names = MEANS_OR_LOG_ODDS, [f"x{i}" for i in range(3 if delta == 0 else 30)]
    text = numbers(5).attributes[-1]
    kinds = [Attribute(name, "numeric", lower=0, upper=100) for name in names]
    domain = Domain((*kinds, text), "c", numbers(5).classes)
    domain = domain.bind(dict.fromkeys(names, DOUBLE) | {"text": VARCHAR, "c": VARCHAR})
    used = set()
    for k in (1, 5):
        request = recipe.request(domain, epsilon, rows_per_unit=k, delta=delta)
        for rows in (-50, 0, 1, 40, 10**4, 10**12):
            classes = np.full(5, rows)
            found = adaptation.adapted(recipe, request, classes)
            chosen = found.unsized
            for then in (found, adaptation.with_misclassified(found, rows)):
                plan = then.plan
                used.add(plan.uses_delta)
                assert plan.fits(epsilon, delta)
                assert plan.query(Purpose.STRONGEST) == chosen.preliminary[-1]
                assert chosen.preliminary[-1].total <= epsilon // 10
                assert min(cost for query in plan.queries for cost in query.by_depth) > 0
    assert used == ({True, False} if delta else {False})
