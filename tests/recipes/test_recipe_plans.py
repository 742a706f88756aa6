"""Plans of recipes keep to their budgets, and the accountant refuses what no plan has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from grown_trees import domain, mixed
from hypothesis import given, settings
from hypothesis import strategies as st
from steps import spending

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO, nano_epsilon
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.privacy.plan import Plan, PlanError, PlannedQuery, counting
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Level

BUDGETS = ("0.1", "0.25", "0.5", "1", "2")


@pytest.mark.parametrize(
    ("trees", "row"),
    [
        (1, [0.011, 0.028, 0.056, 0.111, 0.222]),
        (4, [0.003, 0.007, 0.014, 0.028, 0.056]),
    ],
)
def test_table_1_of_the_paper_from_the_plan(trees: int, row: list[float]) -> None:
    for form in (find("dpdf"), find("dpdf", as_published=True)):
        for budget, published in zip(BUDGETS, row, strict=True):
            request = form.request(domain(), nano_epsilon(budget), trees=trees, depth=5)
            for query in form.plan(request).queries:
                assert {round(epsilon / NANO, 3) for epsilon in query.by_depth} == {published}


def test_the_rigorous_plan_is_the_whole_budget_and_the_published_one_overspends() -> None:
    rigorous, published = find("dpdf"), find("dpdf", as_published=True)
    request = rigorous.request(domain(), NANO, trees=4)
    assert sum(len(q.by_depth) for q in rigorous.plan(request).queries) == 9
    assert NANO - 100 < rigorous.plan(request).epsilon <= NANO
    asked = published.plan(published.request(domain(), NANO))
    assert sum(len(q.by_depth) for q in asked.queries) == 11
    assert asked.epsilon / NANO == pytest.approx(11 / 9)
    assert published.flaws
    assert not rigorous.flaws


@settings(deadline=None)
@given(
    name=st.sampled_from(sorted(RECIPES)),
    epsilon=st.integers(10**6, 10**12),
    trees=st.integers(1, 6),
    depth=st.integers(1, 8),
    rows=st.integers(1, 9),
)
def test_no_rigorous_plan_passes_its_budget(
    name: str, epsilon: int, trees: int, depth: int, rows: int
) -> None:
    recipe = RECIPES[name]
    request = recipe.request(domain(), epsilon, trees=trees, depth=depth, rows_per_unit=rows)
    planned = recipe.plan(request).epsilon
    assert planned > 0
    assert planned <= epsilon or recipe.flaws, "only a form without a guarantee may overspend"


def test_a_rigorous_form_whose_plan_passes_its_budget_is_refused_before_the_debit() -> None:
    """Else the model would promise less loss than there is. With a flaw it promises nothing."""
    rigorous = find("private-rdt")
    request = rigorous.request(domain(), NANO)
    dear = replace(rigorous, plan=lambda request: Plan((counting("rows", (1 + request.epsilon,)),)))
    with pytest.raises(PlanError, match="private-rdt costs more than its budget"):
        dear.whole_plan(request)
    assert find("dpdf", as_published=True).whole_plan(request).epsilon > NANO


def test_the_accountant_refuses_what_was_not_planned() -> None:
    account = Accountant(Plan((PlannedQuery("split", "m", (10, 10), times=3),)), 60, 0)
    assert account.spend("split", 0) == 10
    assert account.spend("split", 1) == 10
    assert spending(account).epsilon == 60
    for purpose, depth in (("split", 1), ("split", 2), ("split", -1), ("leaf", 0)):
        with pytest.raises(PlanError):
            account.spend(purpose, depth)
    with pytest.raises(PlanError):
        Accountant(Plan((PlannedQuery("split", "m", (0,)),)), 0, 0).spend("split")
    least = Plan((PlannedQuery("split", "m", (1, 1)),))
    assert Accountant(least, 2, 0).spend("split") == 1, "the least cost that has noise"
    with pytest.raises(PlanError):
        Accountant(least, 2, 0).spend("split", among=2)
    fresh = Accountant(account.plan, 60, 0)
    assert fresh.spend("split", 0, times=3) == 10
    with pytest.raises(PlanError):
        fresh.spend("split", 1, times=4)
    assert Accountant(account.plan, 60, 0).spend("split", among=3) == 3
    with pytest.raises(PlanError):  # a query of no cost would have no noise that is paid for
        Accountant(account.plan, 60, 0).spend("split", among=11)


def test_an_adapted_plan_fits_into_what_was_debited() -> None:
    old = Plan((PlannedQuery("rows", "m", (5,)), PlannedQuery("split", "m", (10, 10, 10))))
    account = Accountant(old, old.epsilon, 0)
    account.spend("rows")
    account.replan(Plan((PlannedQuery("rows", "m", (5,)), PlannedQuery("split", "m", (15, 15)))))
    assert account.spend("split", 1) == 15
    assert spending(account).epsilon == 20
    for other in (
        Plan((PlannedQuery("rows", "m", (5,)), PlannedQuery("split", "m", (15, 16)))),
        Plan((PlannedQuery("rows", "m", (4,)), PlannedQuery("split", "m", (15, 15)))),
        Plan((PlannedQuery("rows", "m", (5,)), PlannedQuery("split", "m", (50, -30)))),
    ):
        fresh = Accountant(old, old.epsilon, 0)
        fresh.spend("rows")
        with pytest.raises(PlanError):
            fresh.replan(other)


FORMS = [form for r in RECIPES.values() for form in (r, r.published) if form is not None]


@pytest.mark.parametrize("recipe", FORMS, ids=lambda r: r.name + "*" * bool(r.flaws))
def test_rules_compare_counts_with_the_noise_of_all_rows_of_a_unit(recipe: Recipe) -> None:
    """Three times ε for units of three rows is the same noise, so every rule decides the same."""
    one = replace(recipe.request(mixed(), NANO // 2), rows=900)
    three = replace(recipe.request(mixed(), 3 * NANO // 2, rows_per_unit=3), rows=900)
    if recipe.adaptation.size is not None:
        for rows in (20, 300, 2000, 10**5):
            histogram = np.array([rows // 3, rows - rows // 3])
            size = recipe.adaptation.size
            left, right = size(histogram, one), size(histogram, three)
            assert (left.trees, left.depth) == (right.trees, right.depth)
            assert left.domain == right.domain
    if recipe.stop is not None:
        sizes = np.arange(1, 2000)
        noisy = np.stack([sizes // 3, sizes - sizes // 3], axis=1)
        left, right = (
            recipe.stop(
                Level(
                    noisy,
                    sizes.astype(np.float64),
                    np.full(len(sizes), 3),
                    request,
                    recipe.plan(request),
                )
            )
            for request in (one, three)
        )
        assert left.any()
        assert (left == right).all()


def test_more_trees_than_roots_are_refused_before_anything_is_read() -> None:
    with pytest.raises(DpforestError, match=r"dpdf .* 6.*recipe diffprf"):
        find("dpdf").request(domain(), NANO, trees=7)


def test_names_of_recipes() -> None:
    with pytest.raises(DpforestError, match="did you mean dpdf"):
        find("dpfd")
    with pytest.raises(DpforestError, match="as_published"):
        find("auto", as_published=True)


def test_the_stated_noise_of_counts_is_the_largest_of_all_depths_for_all_rows_of_a_unit() -> None:
    query = counting("leaf of a layer", (NANO, NANO // 4), per_row=2)
    assert query.count_noise(3) == laplace_deviation(NANO // 4, 2 * 3)
    assert PlannedQuery("split", "permute-and-flip", (NANO,)).count_noise(3) is None


@pytest.mark.parametrize("recipe", ["sulq-id3", "pinq-id3"])
def test_the_stated_noise_of_counts_by_every_attribute_grows_with_their_number(recipe: str) -> None:
    """A row is in two counts of each: of its value, and of its value and class."""
    request = find(recipe).request(mixed(), NANO)
    query = find(recipe).plan(request).query(Purpose.SPLIT)
    changed = 2 * len(request.domain.attributes)
    assert query.count_noise(3) == laplace_deviation(min(query.by_depth), changed * 3)
