"""Our own recipes use nearly all of the budget that they debit, whatever the number of rows is."""

from __future__ import annotations

import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.gaussian_dp import squared_mu_of
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes import RECIPES, adaptation, find
from dpforest_duckdb.recipes.bounds_queries import with_windows
from dpforest_duckdb.recipes.strongest_query import DEAREST, with_strongest

OURS = [name for name, recipe in RECIPES.items() if recipe.one_form and not recipe.flaws]
SIZES = (100, 300, 600, 3_000, 20_000, 500_000)


def domain_of(numbers: int, categories: int, classes: int) -> Domain:
    attributes = [
        *(Attribute(f"n{i}", "numeric", lower=0, upper=1_000) for i in range(numbers)),
        *(Attribute(f"c{i}", "categorical", ("x", "y", "z")) for i in range(categories)),
    ]
    types = {each.name: DOUBLE if each.kind == "numeric" else VARCHAR for each in attributes}
    labels = tuple(map(str, range(classes)))
    return Domain(tuple(attributes), "class", labels).bind({**types, "class": VARCHAR})


DOMAINS = {
    "numbers, six classes": domain_of(12, 0, 6),
    "many numbers, six classes": domain_of(30, 0, 6),
    "numbers, two classes": domain_of(12, 0, 2),
    "categories, three classes": domain_of(0, 6, 3),
    "both, ten classes": domain_of(8, 3, 10),
}


def part_spent(plan: Plan, epsilon: int, delta: int) -> float:
    if plan.uses_delta:
        return plan.squared_mu / squared_mu_of(epsilon, delta)
    return plan.epsilon / epsilon


@pytest.mark.parametrize("delta", [0, ATTO // 10**5], ids=["pure", "δ"])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("name", OURS)
def test_a_recipe_spends_nearly_all_of_its_budget(name: str, domain: Domain, delta: int) -> None:
    recipe = find(name)
    request = recipe.request(domain, NANO, delta=delta)
    for plan in adaptation.plans(recipe, request, SIZES):
        assert 0.97 < part_spent(plan, NANO, delta) <= 1


@pytest.mark.parametrize("turns", [1, 4])
def test_windows_before_class_means_take_only_their_own_cost(turns: int) -> None:
    domain, delta, rows = DOMAINS["numbers, six classes"], ATTO // 10**5, 20_000
    recipe = find("class-means")
    request = recipe.request(domain, NANO, delta=delta)
    for turn in range(1, turns + 1):
        further = with_windows(request, turn, 12, rows, recipe.adaptation.measure(request))
        assert further is not None
        request = further
    sized = adaptation.sized(recipe, request, np.full(6, rows // 6))
    plan = recipe.plan(sized)
    assert plan.uses_delta
    assert 0.97 < part_spent(plan, NANO, delta) <= 1


def test_the_strongest_attribute_before_class_means_takes_only_its_own_cost() -> None:
    domain, delta, rows = domain_of(60, 0, 6), ATTO // 10**5, 300
    recipe = find("class-means")
    request = with_strongest(recipe.request(domain, NANO, delta=delta), NANO // DEAREST)
    plan = recipe.plan(adaptation.sized(recipe, request, np.full(6, rows // 6)))
    assert plan.uses_delta
    assert 0.97 < part_spent(plan, NANO, delta) <= 1
