"""Splits are drawn with the sensitivities that were proved, and nodes get noise of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from grown_trees import RIGOROUS, SPECIALISED, VARIANTS, domain, grown, mixed, trained
from steps import seeded

from dpforest_duckdb.engine.base import POINTS
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import (
    NO_SPLIT,
    Choice,
    Drawn,
    among,
    distinct_roots,
    weighted_split,
)
from dpforest_duckdb.splits.utilities import UTILITY_PARTS


@pytest.mark.parametrize("rows_per_unit", [1, 3])
@pytest.mark.parametrize("name", SPECIALISED)
def test_one_draw_serves_a_whole_depth(
    name: str, rows_per_unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DiffGen: two points at first, then a draw and at most two points of disjoint rows a step.

    One row changes the max operator by at most 1, the rows of a unit by as many.
    """
    from dpforest_duckdb.learners import specialisation

    draws: list[int] = []
    exponents = specialisation.exponents

    def weights(utilities, allowed, epsilon, sensitivity, monotone):  # type: ignore[no-untyped-def]
        draws.append(epsilon)
        assert (sensitivity, monotone) == (rows_per_unit, True)
        return exponents(utilities, allowed, epsilon, sensitivity, monotone)

    monkeypatch.setattr(specialisation, "exponents", weights)
    account, trees = trained(RECIPES[name], rows_per_unit=rows_per_unit, depth=4)
    split = account.plan.query("split")
    assert split is not None
    assert trees[0].depth(mixed().cells) <= 4
    if name == "dt-diff":
        assert draws == list(split.by_depth)
    else:
        assert set(draws) <= {split.by_depth[0] // 4, split.by_depth[1] // 2}
        assert 4 + 2 <= len(draws) <= 3 + 3 * 3


@pytest.mark.parametrize("name", ["diffgen:ig", "dt-diff:ig"])
def test_the_gain_of_an_entry_is_drawn_by_the_form_for_changes_in_both_directions(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row more may raise the gain of one entry and lower that of another."""
    from dpforest_duckdb.learners import specialisation

    exponents, given = specialisation.exponents, set[tuple[int, bool]]()

    def weights(utilities, allowed, epsilon, sensitivity, monotone):  # type: ignore[no-untyped-def]
        given.add((sensitivity, monotone))
        return exponents(utilities, allowed, epsilon, sensitivity, monotone)

    monkeypatch.setattr(specialisation, "exponents", weights)
    trained(find(name), rows_per_unit=3, depth=2)
    assert given == {(3 * UTILITY_PARTS, False)}


def test_the_level_loop_needs_a_chooser_and_learners_without_it_need_none() -> None:
    assert {name for name, recipe in RECIPES.items() if recipe.choose is None} == {
        *("diffgen", "dt-diff", "auto", "boosted", "joint-tables", "log-odds", "class-means"),
        "rooted-tables",
    }
    with pytest.raises(AssertionError, match="says how splits are drawn"):
        trained(replace(RECIPES["dpdf"], choose=None))


def open_nodes(nodes: int, depth: int, attributes: int = 3) -> Choice:
    """Nodes that each attribute can split."""
    randomness = seeded(3)
    ways = candidates(domain(attributes=attributes), "multiway")
    return Choice(
        candidates=ways,
        counts=[],
        allowed=np.ones((nodes, attributes), dtype=np.bool_),
        reachable=np.ones((nodes, sum(ways.cells)), dtype=np.bool_),
        noisy=None,
        epsilon=0,
        rows_per_unit=1,
        noise=randomness.noise,
        bits=randomness.bits,
        depth=depth,
    )


def first_allowed(choice: Choice) -> Drawn:
    return Drawn(choice.allowed.argmax(axis=1))


def test_attributes_are_drawn_alike() -> None:
    """One of three, without replacement."""
    shown: list[np.ndarray] = []

    def first(choice: Choice) -> Drawn:
        shown.append(choice.allowed)
        return first_allowed(choice)

    among(first, lambda m: 1)(open_nodes(20_000, depth=1))
    assert shown[0].mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.02)


@pytest.mark.parametrize(
    ("attributes", "of", "many"),
    [(3, math.sqrt, 1), (4, math.sqrt, 2), (10, math.sqrt, 3), (5, lambda m: m - 1, 4)],
)
def test_so_many_attributes_are_drawn_at_each_node_as_the_rule_says(
    attributes: int, of: Callable[[int], float], many: int
) -> None:
    """⌊√m⌋ of m by default, and at least one; all that are left if they are fewer."""
    shown: list[np.ndarray] = []

    def first(choice: Choice) -> Drawn:
        shown.append(choice.allowed)
        return first_allowed(choice)

    nodes = open_nodes(50, depth=1, attributes=attributes)
    nodes.allowed[25:, 1:] = False
    among(first, of)(nodes)
    assert (shown[0][:25].sum(axis=1) == many).all()
    assert not shown[0][25:, 1:].any()
    assert shown[0][25:, 0].all()


def test_roots_have_different_attributes_and_deeper_nodes_need_not() -> None:
    choose = distinct_roots(first_allowed)
    assert choose(open_nodes(3, depth=0)).candidate.tolist() == [0, 1, 2]
    assert choose(open_nodes(3, depth=1)).candidate.tolist() == [0, 0, 0]


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("name", ["dpdf", "snr-forest"])
def test_forests_with_different_roots_split_by_as_many_attributes(
    name: str, published: bool
) -> None:
    form, attributes = find(name, as_published=published), len(domain().attributes)
    for seed in range(3):
        trees, _, _ = grown(form, trees=attributes, epsilon=1000 * NANO, seed=seed)
        assert sorted(int(tree.attribute[0]) for tree in trees) == list(range(attributes))


def test_a_root_that_stays_a_leaf_takes_no_attribute_from_another() -> None:
    left = iter([NO_SPLIT, 2])  # attribute 2 is the last, which -1 could be taken for

    def choose(choice: Choice) -> Drawn:
        drawn = next(left)
        assert drawn == NO_SPLIT or choice.allowed[0, drawn]
        return Drawn(np.array([drawn]))

    assert distinct_roots(choose)(open_nodes(2, depth=0)).candidate.tolist() == [NO_SPLIT, 2]


def test_every_tree_and_depth_has_noise_of_its_own() -> None:
    trees, _, _ = grown(find("dpdf"), trees=3, epsilon=NANO)
    roots = [tuple(tree.counts[0]) for tree in trees if tree.counts is not None]
    assert len(set(roots)) == 3
    sums = [
        int(tree.counts[0].sum() - tree.counts[list(tree.children(0, domain().cells))].sum())
        for tree in trees
        if tree.counts is not None and tree.nodes > 1
    ]
    assert any(sums), "children are not derived from their parent's noise"


@pytest.mark.parametrize("name", [*RIGOROUS, *VARIANTS])
def test_sensitivities_are_those_that_were_proved(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A split is drawn with the constant sensitivity of its utility, for any noisy counts."""
    from dpforest_duckdb.splits import choose, utilities

    proved = {u.sensitivity for u in vars(utilities).values() if isinstance(u, utilities.Utility)}
    given: set[int] = set()
    exponents = choose.exponents

    def weights(utilities, allowed, epsilon, sensitivity, monotone):  # type: ignore[no-untyped-def]
        given.add(sensitivity)
        return exponents(utilities, allowed, epsilon, sensitivity, monotone)

    monkeypatch.setattr(choose, "exponents", weights)
    trained(find(name), depth=2)
    # twice, where a row may count twice; points have a proof of their own
    assert given <= proved | {2 * one for one in proved} | {POINTS}


def test_an_attribute_is_drawn_in_proportion_to_its_weight_and_its_splits_alike() -> None:
    splits = candidates(domain(), "binary")
    attributes, nodes = len(domain().attributes), 40_000
    weights = np.arange(1.0, attributes + 1)
    allowed = np.ones((nodes, len(splits.attribute)), dtype=np.bool_)
    allowed[:, splits.attribute == attributes - 1] = False
    drawn = weighted_split(splits, allowed, weights, seeded(5).bits)
    expected = weights[splits.attribute] / np.bincount(splits.attribute)[splits.attribute]
    expected[splits.attribute == attributes - 1] = 0
    expected *= nodes / expected.sum()
    found = np.bincount(drawn, minlength=len(expected))
    assert (found[expected == 0] == 0).all()
    some = expected > 0
    assert ((found - expected)[some] ** 2 / expected[some]).sum() < 3 * some.sum()
