"""The branches of the default, as a dry run shows them before a row is read."""

from __future__ import annotations

import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.measure import Measure
from dpforest_duckdb.privacy.plan import ROW_COUNTS, Plan
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.branches import branches
from dpforest_duckdb.recipes.recipe import Recipe

TYPES = {"n1": INTEGER, "n2": DOUBLE, "n3": DOUBLE, "c": VARCHAR, "y": VARCHAR}


def domain(classes: int) -> Domain:
    numbers = [Attribute(f"n{i}", "numeric", lower=0, upper=1000) for i in (1, 2, 3)]
    category = Attribute("c", "categorical", ("a", "b", "c"))
    labels = tuple(f"k{i}" for i in range(classes))
    return Domain((*numbers, category), "y", labels).bind(TYPES)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("delta", [0, ATTO // 10**6])
def test_branches_end_where_the_recipe_or_its_queries_change_and_cost_no_more_than_epsilon(
    classes: int, delta: int
) -> None:
    auto = find("auto")
    request = auto.request(domain(classes), NANO, delta=delta)

    def taken(rows: int) -> tuple[Recipe, list[tuple[str, str]]]:
        counts = np.arange(rows, rows + classes) // classes
        assert counts.sum() == rows
        found = adaptation.adapted(auto, request, counts)
        return found.recipe, asked(found.plan)

    def asked(plan: Plan) -> list[tuple[str, Measure]]:
        queries = (query for query in plan.queries if query.purpose not in ROW_COUNTS)
        return [(query.purpose, query.measure) for query in queries]

    found = branches(auto, request)
    assert len(found) > 1
    for branch in found:
        queries = asked(branch.plans[0])
        assert taken(branch.least) == (branch.recipe, queries)
        assert asked(branch.plans[1]) == queries, "the first one shows every query"
        for plan in branch.plans:
            assert plan.fits(NANO, delta)
        if branch.most is not None:
            assert taken(branch.most) == (branch.recipe, queries)
            assert taken(branch.most + 1) != (branch.recipe, queries)


def test_all_costs_of_a_branch_are_in_one_measure() -> None:
    """`class-means` asks the same with few and with many rows, but for few of them in ε."""
    numbers = [Attribute(f"n{i}", "numeric", lower=0, upper=100) for i in range(10)]
    types = {f"n{i}": DOUBLE for i in range(10)} | {"y": VARCHAR}
    public = Domain(tuple(numbers), "y", ("k0", "k1", "k2", "k3")).bind(types)
    recipe = find("class-means")
    found = branches(recipe, recipe.request(public, NANO // 10, delta=ATTO // 10**8))
    assert {plan.uses_delta for branch in found for plan in branch.plans} == {False, True}
    for branch in found:
        first, last = (
            [q.measure for q in plan.queries if q.purpose not in ROW_COUNTS]
            for plan in branch.plans
        )
        assert first == last


def test_a_recipe_that_does_not_adapt_has_no_branches() -> None:
    recipe = find("dpdf")
    assert branches(recipe, recipe.request(domain(2), NANO)) == []


def noises(name: str, classes: int, k: int = 1) -> dict[str, tuple[float | None, int]]:
    """The noise that a plan states for each query, and the query's cost per depth."""
    recipe = find(name)
    request = recipe.request(domain(classes), NANO, rows_per_unit=k)
    few = branches(recipe, request)[0].first
    plan = recipe.plan(few)
    return {q.purpose: (recipe.learner.deviation(q, few), min(q.by_depth)) for q in plan.queries}


@pytest.mark.parametrize(("classes", "bound"), [(2, 1), (5, 3)])
@pytest.mark.parametrize("k", [1, 4])
def test_the_noise_of_gradients_is_that_of_their_sensitivity(
    classes: int, bound: int, k: int
) -> None:
    """One row changes the sums of two classes by 1 in L1, those of more by 3."""
    found = noises("boosted", classes, k)
    for purpose in {"sweep", "forest"} & set(found):
        deviation, cost = found[purpose]
        assert deviation == pytest.approx(2**0.5 * k * bound * NANO / cost)
    assert found["bins"][0] is None, "a choice has no noise to state"


@pytest.mark.parametrize("name", ["joint-tables", "rooted-tables"])
def test_joint_noise_is_stated_and_grows_with_the_rows_of_a_unit(name: str) -> None:
    one, four = (noises(name, 3, k)["tables"][0] for k in (1, 4))
    assert one is not None
    assert four is not None
    assert 2 * one < four < 4.01 * one
