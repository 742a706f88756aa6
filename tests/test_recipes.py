"""DPDF and auto: the published budget exactly, the structure, the post-processing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.errors import DpforestError, NotPrivateWarning
from dpforest_duckdb.forest import LEAF, MULTIWAY, SCALE, Forest, Tree
from dpforest_duckdb.privacy.accountant import Accountant, Plan, PlanError, Query
from dpforest_duckdb.privacy.units import NANO, nano_epsilon
from dpforest_duckdb.pruning import impurity, prune_by_gini
from dpforest_duckdb.recipe import MAX_LEAVES, Recipe
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.recipes.dpdf import stop
from dpforest_duckdb.smoothing import shrink_to_parent, sum_upward
from dpforest_duckdb.training import Randomness, grow
from dpforest_duckdb.voting import confidence, vote_by_confidence, vote_by_shares


def domain(cells: int = 3, attributes: int = 6, classes: int = 2) -> Domain:
    values = tuple(str(i) for i in range(cells))
    return Domain(
        tuple(
            Attribute(f"a{i}", "categorical", values, nullable=False, type="VARCHAR")
            for i in range(attributes)
        ),
        "y",
        tuple(f"c{i}" for i in range(classes)),
        "VARCHAR",
    )


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
                assert round(query.epsilon / NANO, 3) == published


def test_the_rigorous_plan_is_the_whole_budget_and_the_published_one_overspends() -> None:
    rigorous, published = find("dpdf"), find("dpdf", as_published=True)
    request = rigorous.request(domain(), NANO, trees=4)
    assert sum(q.levels for q in rigorous.plan(request).queries) == 9
    assert NANO - 100 < rigorous.plan(request).epsilon <= NANO
    asked = published.plan(published.request(domain(), NANO))
    assert sum(q.levels for q in asked.queries) == 11
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
    assert 0 < recipe.plan(request).epsilon <= epsilon


def test_the_accountant_refuses_what_was_not_planned() -> None:
    account = Accountant(Plan((Query("split", "m", 10, levels=2, times=3),)))
    assert account.spend("split") == 10
    assert account.spend("split") == 10
    assert account.spent == 60
    with pytest.raises(PlanError):
        account.spend("split")
    with pytest.raises(PlanError):
        account.spend("leaf")
    with pytest.raises(PlanError):
        Accountant(account.plan).spend("split", 21)
    with pytest.raises(PlanError):
        Accountant(account.plan).spend("split", 0)


class Rows:
    """Rows in memory, counted and routed as the engine does."""

    def __init__(
        self, codes: np.ndarray, labels: np.ndarray, cells: tuple, classes: int, trees: int
    ):
        self.codes, self.labels, self.cells, self.classes = codes, labels, cells, classes
        self.node = np.tile(np.arange(trees)[:, None], (1, len(codes)))

    def count_classes(self, first: int, nodes: int) -> list[np.ndarray]:
        found = []
        for a, cells in enumerate(self.cells):
            table = np.zeros((nodes, cells, self.classes), dtype=np.int64)
            for node in self.node:
                mine = node >= first
                np.add.at(table, (node[mine] - first, self.codes[mine, a], self.labels[mine]), 1)
            found.append(table)
        return found

    def count_leaves(self, first: int, nodes: int) -> np.ndarray:
        return self.count_classes(first, nodes)[0].sum(axis=1)

    def route(self, splits: object, nodes: int) -> None:
        from dpforest_duckdb.forest import branch_of

        for row in self.node:
            old = row.copy()
            for n, a, k, c, f in zip(
                splits.node, splits.attribute, splits.kind, splits.cell, splits.first, strict=True
            ):
                mine = old == n
                row[mine] = f + branch_of(np.array(k), np.array(c), self.codes[mine, a])

    def drop(self) -> None:
        pass


def grown(
    recipe: Recipe,
    *,
    epsilon: int = 50 * NANO,
    trees: int = 1,
    rows: int = 4000,
    seed: int = 0,
    depth: int | None = None,
) -> tuple[list[Tree], Accountant, Domain]:
    random = np.random.default_rng(seed)
    public = domain()
    codes = random.integers(0, 3, size=(rows, 6))
    labels = ((codes[:, 0] == 1) ^ (codes[:, 3] == 2)).astype(np.int64)
    request = recipe.request(public, epsilon, trees=trees, depth=depth)
    account = Accountant(recipe.plan(request))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        randomness = Randomness.seeded(seed)
    table = Rows(codes, labels, public.cells, 2, trees)
    made = grow(table, recipe, request, account, randomness, lambda message: None)
    finished = [recipe.finish(tree, request, account.plan) for tree in made]
    assert all(tree.nodes <= before.nodes for tree, before in zip(finished, made, strict=True))
    return made, account, public


def paths(tree: Tree, cells: tuple) -> list[list[int]]:
    """The attributes on the way to each node."""
    found: list[list[int]] = [[] for _ in range(tree.nodes)]
    for node in range(tree.nodes):
        for child in tree.children(node, cells):
            found[child] = [*found[node], int(tree.attribute[node])]
    return found


def test_dpdf_uses_an_attribute_once_per_path_and_another_root_per_tree() -> None:
    trees, _, public = grown(find("dpdf"), trees=6)
    roots = [int(tree.attribute[0]) for tree in trees]
    assert len(set(roots)) == 6
    for tree in trees:
        assert (tree.kind[tree.kind != LEAF] == MULTIWAY).all()
        for path in paths(tree, public.cells):
            assert len(path) == len(set(path))
            assert len(path) <= 4


def test_dpdf_finds_the_attributes_that_matter() -> None:
    trees, _, public = grown(find("dpdf"), rows=20000)
    assert {a for path in paths(trees[0], public.cells) for a in path[:2]} >= {0, 3}


def test_dpdf_asks_its_histogram_at_every_node() -> None:
    trees, account, _ = grown(find("dpdf"))
    assert trees[0].counts is not None
    assert abs(int(trees[0].counts[0].sum()) - 4000) < 50
    assert account.spent <= account.plan.epsilon


def test_the_four_stopping_conditions_of_line_16() -> None:
    histogram = np.array([[60, 39], [60, 40], [100, 0], [101, -1], [99, 1], [50, 50]])
    assert stop(histogram).tolist() == [True, False, True, True, False, False]
    # a node without an attribute left, and one at the last depth, stay leaves too
    trees, _, public = grown(find("dpdf"), depth=7)
    assert max(len(path) for path in paths(trees[0], public.cells)) <= 6


def tree_of(counts: list[list[int]], kind: list[int], first: list[int]) -> Tree:
    k = np.array(kind)
    return Tree(
        k,
        np.where(k == LEAF, -1, 0),
        np.zeros(len(k), dtype=np.int64),
        np.array(first),
        np.array(counts),
        np.zeros((len(k), 2), dtype=np.int64),
    )


def test_pruning_removes_leaves_that_are_no_purer_than_their_parent() -> None:
    cells = (2,)
    kept = tree_of([[50, 50], [45, 5], [5, 45]], [1, 0, 0], [1, -1, -1])
    assert prune_by_gini(kept, cells).nodes == 3
    equal = tree_of([[50, 50], [25, 25], [25, 25]], [1, 0, 0], [1, -1, -1])
    assert prune_by_gini(equal, cells).nodes == 1
    empty = tree_of([[50, 50], [-3, -1], [0, -9]], [1, 0, 0], [1, -1, -1])
    assert prune_by_gini(empty, cells).nodes == 1


def test_pruning_goes_on_until_nothing_changes() -> None:
    cells = (2,)
    # the lower split is useless; once it is gone, the upper one is judged, and is useless too
    chain = tree_of(
        [[50, 50], [25, 25], [25, 25], [20, 20], [5, 5]], [1, 1, 0, 0, 0], [1, 3, -1, -1, -1]
    )
    once = prune_by_gini(chain, cells)
    assert once.nodes == 1
    # a parent whose child still splits is not judged by (27)
    mixed = tree_of(
        [[50, 50], [25, 25], [25, 25], [25, 0], [0, 25]], [1, 1, 0, 0, 0], [1, 3, -1, -1, -1]
    )
    assert prune_by_gini(mixed, cells).nodes == 5


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_pruned_again_nothing_changes(seed: int) -> None:
    trees, _, public = grown(find("dpdf"), epsilon=NANO // 2, rows=600, seed=seed)
    once = prune_by_gini(trees[0], public.cells)
    again = prune_by_gini(once, public.cells)
    assert (once.nodes, once.kind.tolist()) == (again.nodes, again.kind.tolist())


def test_impurity_and_confidence_of_noisy_counts() -> None:
    assert impurity(np.array([[1, 1], [4, 0], [-3, 5], [0, 0], [-1, -1]])).tolist() == [
        0.5,
        0.0,
        0.0,
        0.0,
        0.0,
    ]
    tree = tree_of([[30, 10], [-5, 8], [-1, -2]], [1, 0, 0], [1, -1, -1])
    assert confidence(tree).tolist() == [0.75, 1.0, 0.5]
    votes = vote_by_confidence(tree).votes
    assert votes.tolist() == [[0, 0], [0, SCALE], [SCALE // 2, 0]]


def test_shares_are_votes_that_sum_to_the_scale() -> None:
    tree = tree_of([[1, 2], [0, 1], [1, 1]], [1, 0, 0], [1, -1, -1])
    votes = vote_by_shares(tree, np.array([[0.5, 0.5], [1 / 3, 2 / 3], [1e-9, 1]])).votes
    assert votes.sum(axis=1).tolist() == [0, SCALE, SCALE]
    assert votes[1].tolist() == [333_333, 666_667]


def test_counts_are_summed_upward_and_shrunk_to_the_parent() -> None:
    tree = tree_of([[0, 0], [90, 10], [0, 0]], [1, 0, 0], [1, -1, -1])
    summed = sum_upward(tree, (2,))
    assert summed.counts is not None
    assert summed.counts[0].tolist() == [90, 10]
    shares = shrink_to_parent(summed, (2,), noise=5.0)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert shares[2] == pytest.approx(shares[0])
    assert 0.5 < shares[0, 0] < shares[1, 0] < 0.9


def test_auto_is_shallow_where_noise_is_large() -> None:
    deep, _, public = grown(find("auto"), epsilon=10 * NANO)
    shallow, account, _ = grown(find("auto"), epsilon=NANO // 50)
    assert shallow[0].depth(public.cells) < deep[0].depth(public.cells)
    assert account.spent <= account.plan.epsilon <= NANO // 50


def test_more_trees_than_roots_are_refused_before_anything_is_read() -> None:
    with pytest.raises(DpforestError, match=r"dpdf .* 6.*--recipe auto"):
        find("dpdf").request(domain(), NANO, trees=7)


def test_a_multiway_tree_is_no_larger_than_the_public_cap() -> None:
    wide = domain(cells=100, attributes=8)
    request = find("dpdf").request(wide, NANO, depth=5)
    assert 101**request.depth <= MAX_LEAVES
    assert find("dpdf").plan(request).epsilon <= NANO


def test_names_of_recipes() -> None:
    with pytest.raises(DpforestError, match="did you mean dpdf"):
        find("dpfd")
    with pytest.raises(DpforestError, match="--as-published"):
        find("auto", as_published=True)


def test_a_recipe_that_asks_once_more_is_caught() -> None:
    greedy = replace(
        find("dpdf"),
        plan=lambda request: Plan(
            tuple(replace(q, levels=q.levels - 1) for q in find("dpdf").plan(request).queries)
        ),
    )
    with pytest.raises(PlanError):
        grown(greedy, epsilon=NANO, rows=20_000)


def test_forms_of_dpdf_train_in_the_database(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute("CREATE TABLE t (a ENUM ('x', 'y'), b BOOLEAN, k BOOLEAN)")
    con.execute("INSERT INTO t SELECT 'x', i % 3 = 0, i % 3 = 0 FROM range(900) r(i)")
    published = fit(con, "t", target="k", recipe="dpdf", as_published=True)
    assert not published.private
    assert any("noisy node size" in reason for reason in published.guarantee.reasons)
    assert "private: NO" in published.to_sql("t")


@pytest.mark.parametrize("name", sorted(RECIPES))
@pytest.mark.parametrize("rows_per_unit", [1, 4])
def test_the_mechanisms_are_given_what_the_plan_says(
    monkeypatch: pytest.MonkeyPatch, name: str, rows_per_unit: int
) -> None:
    """ε and sensitivity as they arrive at the mechanisms, summed along a path."""
    from dpforest_duckdb.privacy.noise import ExactNoise
    from dpforest_duckdb.splits import choose

    given: list[int] = []
    laplace, exponents = ExactNoise.laplace, choose.exponents

    def noise(self: ExactNoise, counts: np.ndarray, epsilon: int, sensitivity: int) -> np.ndarray:
        given.append(epsilon)
        assert sensitivity == rows_per_unit
        return laplace(self, counts, epsilon, sensitivity)

    def weights(utilities, allowed, epsilon, sensitivity, monotone):  # type: ignore[no-untyped-def]
        given.append(epsilon)
        assert sensitivity == 2 * rows_per_unit
        assert monotone
        return exponents(utilities, allowed, epsilon, sensitivity, monotone)

    monkeypatch.setattr(ExactNoise, "laplace", noise)
    monkeypatch.setattr(choose, "exponents", weights)
    recipe = RECIPES[name]
    request = recipe.request(domain(), NANO, trees=1, rows_per_unit=rows_per_unit)
    account = Accountant(recipe.plan(request))
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, size=30_000)
    table = Rows(random.integers(0, 3, size=(30_000, 6)), labels, domain().cells, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        randomness = Randomness.seeded(0)
    grow(table, recipe, request, account, randomness, lambda message: None)
    assert sum(given) == account.spent
    assert account.plan.epsilon - 20 < sum(given) <= account.plan.epsilon <= NANO


def test_noise_is_drawn_anew_for_every_tree_and_depth() -> None:
    trees, _, _ = grown(find("dpdf"), trees=3, epsilon=NANO)
    roots = [tuple(tree.counts[0]) for tree in trees if tree.counts is not None]
    assert len(set(roots)) == 3
    sums = [
        int(tree.counts[0].sum() - tree.counts[list(tree.children(0, domain().cells))].sum())
        for tree in trees
        if tree.counts is not None and tree.nodes > 1
    ]
    assert any(sums), "children are not derived from their parent's noise"
