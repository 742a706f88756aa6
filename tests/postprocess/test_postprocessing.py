"""Pruning, votes and shares that follow from noisy counts alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from grown_trees import grown, tree_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest_duckdb.postprocess.pruning import impurity, prune_by_gini
from dpforest_duckdb.postprocess.shrinkage import shrink_to_parent, sum_upward
from dpforest_duckdb.postprocess.voting import (
    FINENESS,
    confidence,
    integer_votes,
    vote_by_confidence,
    vote_by_counts,
    vote_by_shares,
    vote_by_surest,
)
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import find
from dpforest_duckdb.tree import SCALE


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
def test_pruning_twice_changes_nothing(seed: int) -> None:
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
    three = tree_of([[1, 2, 3]], [0], [-1])
    votes = vote_by_shares(three, np.array([[1 / 2, 1 / 3, 1 / 6]])).votes
    assert votes.tolist() == [[500_000, 333_333, 166_667]], "the largest fraction is rounded up"


def test_shares_of_counts_take_those_below_0_as_0() -> None:
    counts = [[9, 9], [1, 0], [3, 0], [-5, 8], [-1, -2]]
    votes = vote_by_counts(tree_of(counts, [1, 0, 0, 0, 0], [1, -1, -1, -1, -1])).votes
    half = SCALE // 2
    assert votes.tolist() == [[0, 0], [SCALE, 0], [SCALE, 0], [0, SCALE], [half, half]]


def test_a_leaf_votes_as_the_root_if_that_is_surer() -> None:
    """And as itself if it is as sure."""
    tree = tree_of([[8, 2], [3, 1], [1, 4]], [1, 0, 0], [1, -1, -1])
    sure = round(0.8 * SCALE)
    assert vote_by_surest(tree, (2,)).votes.tolist() == [[0, 0], [sure, 0], [0, sure]]


def test_counts_are_summed_upward_and_shrunk_to_the_parent() -> None:
    tree = tree_of([[0, 0], [90, 10], [0, 0]], [1, 0, 0], [1, -1, -1])
    summed = sum_upward(tree, (2,))
    assert summed.counts is not None
    assert summed.counts[0].tolist() == [90, 10]
    shares = shrink_to_parent(summed, (2,), noise=5.0)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert shares[2] == pytest.approx(shares[0])
    assert 0.5 < shares[0, 0] < shares[1, 0] < 0.9


def test_as_many_rows_are_shrunk_by_as_noise_makes_up_in_all_classes_and_one_more() -> None:
    """√(k·C)·σ rows for counts that are sums over k leaves of C classes."""
    summed = sum_upward(tree_of([[0, 0], [90, 10], [0, 0]], [1, 0, 0], [1, -1, -1]), (2,))
    shares = shrink_to_parent(summed, (2,), noise=5.0)
    of_root, of_leaf = 5 * math.sqrt(2 * 2) + 1, 5 * math.sqrt(1 * 2) + 1
    root = (90 + of_root / 2) / (100 + of_root)
    assert shares[:, 0] == pytest.approx([root, (90 + of_leaf * root) / (100 + of_leaf), root])


@pytest.mark.parametrize("classes", [2, 3])
def test_votes_are_log_odds_from_0_and_those_of_two_classes_have_one_sum(classes: int) -> None:
    odds = np.random.default_rng(0).normal(size=(20, classes))
    votes = integer_votes(odds)
    apart = np.diff(votes, axis=1) / SCALE
    assert apart == pytest.approx(np.diff(odds, axis=1), abs=1.1 / FINENESS)
    if classes == 2:
        assert len(set(votes.sum(axis=1).tolist())) == 1
        assert votes.min() == 0
    else:
        assert (votes.min(axis=1) == 0).all()
