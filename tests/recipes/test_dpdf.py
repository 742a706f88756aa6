"""The trees of dpdf, where they stop, and the noise of its counts and of those like it."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pytest
from grown_trees import domain, drawn_rows, grown
from steps import spending

from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.stopping import small_or_pure
from dpforest_duckdb.request import Level
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree


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


def test_dpdf_queries_a_histogram_at_every_node() -> None:
    trees, account, _ = grown(find("dpdf"))
    assert trees[0].counts is not None
    assert abs(int(trees[0].counts[0].sum()) - 4000) < 50
    assert spending(account).epsilon <= account.plan.epsilon


@pytest.mark.parametrize("name", ["dpdf", "pinq-id3", "greedy-tree", "snr-forest"])
def test_the_stated_noise_is_the_noise_that_is_there(name: str) -> None:
    """Counts differ from true ones by the stated standard deviation, over nodes and seeds."""
    off: list[float] = []
    for seed in range(12):
        trees, _, public = grown(find(name), epsilon=NANO, rows=2000, seed=seed)
        codes, labels = drawn_rows(2000, seed)
        for tree in trees:
            summed = sum_upward(tree, public.cells) if np.isnan(tree.noise).any() else tree
            assert summed.counts is not None
            assert summed.noise is not None
            under, parents = summed.find(codes), summed.parents(public.cells)
            true = np.zeros(summed.counts.shape)
            np.add.at(true, (under, labels), 1)
            for node in range(summed.nodes - 1, 0, -1):
                true[parents[node]] += true[node]
            off += ((summed.counts - true) / summed.noise[:, None]).ravel().tolist()
    assert len(off) > 200
    assert 0.8 < np.mean(np.square(off)) < 1.25


def test_the_four_stopping_conditions_of_line_16() -> None:
    histogram = np.array([[60, 39], [60, 40], [100, 0], [101, -1], [99, 1], [50, 50]])
    request = find("dpdf").request(domain(), NANO)
    level = Level(histogram, np.zeros(6), np.full(6, 3), request, find("dpdf").plan(request))
    assert small_or_pure(100)(level).tolist() == [True, False, True, True, False, False]
    # a node without an attribute left, and one at the last depth, stay leaves too
    trees, _, public = grown(find("dpdf"), depth=7)
    assert max(len(path) for path in paths(trees[0], public.cells)) <= 6


def test_the_greedy_tree_is_shallow_where_noise_is_large() -> None:
    deep, _, public = grown(find("greedy-tree"), epsilon=10 * NANO)
    shallow, account, _ = grown(find("greedy-tree"), epsilon=NANO // 50)
    assert shallow[0].depth(public.cells) < deep[0].depth(public.cells)
    assert spending(account).epsilon <= account.plan.epsilon <= NANO // 50


def test_forms_of_dpdf_train_in_the_database(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute("CREATE TABLE t (a ENUM ('x', 'y'), b BOOLEAN, k BOOLEAN)")
    con.execute("INSERT INTO t SELECT 'x', i % 3 = 0, i % 3 = 0 FROM range(900) r(i)")
    published = fit(con, "t", target="k", recipe="dpdf", as_published=True)
    assert not published.private
    assert any("noisy node size" in reason for reason in published.guarantee.reasons)
    assert "private: NO" in published.to_sql("t")
