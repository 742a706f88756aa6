"""How a leaf votes: integers that are summed over trees; post-processing, which costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.request import Request
from dpforest_duckdb.tree import LEAF, SCALE, Tree, counts_of


def confidence(tree: Tree) -> Floats:
    """The share of the most frequent class `[node]` (Fletcher & Islam 2015, footnote 6).

    Negative noisy counts are taken as zero. Without a positive count it is 1/C; no paper gives that
    case.
    """
    present = np.clip(counts_of(tree), 0, None).astype(np.float64)
    total = present.sum(axis=1)
    equal = np.full(tree.nodes, 1 / present.shape[1])
    np.divide(present.max(axis=1), total, out=equal, where=total > 0)
    return equal


def vote_by_confidence(tree: Tree) -> Tree:
    """Each leaf votes for its most frequent class, with its confidence (Fletcher & Islam 2015)."""
    counts = counts_of(tree)
    votes, winner = np.zeros_like(counts), counts.argmax(axis=1)
    weight = np.maximum(1, np.rint(confidence(tree) * SCALE)).astype(np.int64)
    votes[np.arange(tree.nodes), winner] = weight
    return replace(tree, votes=of_leaves(tree, votes))


def vote_by_counts(tree: Tree) -> Tree:
    """Each leaf votes for every class with its share of the noisy counts, negatives as zero."""
    present = np.clip(counts_of(tree), 0, None).astype(np.float64)
    return vote_by_shares(tree, np.where(present.sum(axis=1, keepdims=True) > 0, present, 1.0))


def vote_by_majority(tree: Tree) -> Tree:
    """Each leaf has one vote, for its most frequent class by noisy counts."""
    counts = counts_of(tree)
    winner = np.eye(counts.shape[1], dtype=np.int64)[counts.argmax(axis=1)]
    return replace(tree, votes=of_leaves(tree, winner * SCALE))


def vote_by_label(tree: Tree) -> Tree:
    """Each leaf has one vote, for its released label; there are no counts to keep."""
    votes = of_leaves(tree, counts_of(tree) * SCALE)
    return replace(tree, votes=votes, counts=None, noise=None)


def vote_by_surest(tree: Tree, cells: Sequence[int]) -> Tree:
    """Each leaf votes as the most confident node on its path (Fletcher & Islam 2015b)."""
    sure, surest = confidence(tree), np.arange(tree.nodes)
    for node, parent in enumerate(tree.parents(cells)):
        if parent >= 0 and sure[surest[parent]] > sure[node]:
            surest[node] = surest[parent]
    everywhere = vote_by_confidence(replace(tree, kind=np.full_like(tree.kind, LEAF)))
    return replace(tree, votes=of_leaves(tree, everywhere.votes[surest]))


def vote_by_shares(tree: Tree, shares: Floats) -> Tree:
    """Each leaf votes for every class with its share `[node, class]`; a leaf's votes sum to SCALE.

    Votes are rounded down; the remainder goes to the largest fractions, so the sum is exact.
    """
    exact = shares / shares.sum(axis=1, keepdims=True) * SCALE
    votes = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - votes), axis=1, kind="stable")
    short = SCALE - votes.sum(axis=1)
    rank = np.argsort(order, axis=1, kind="stable")
    votes += rank < short[:, None]
    return replace(tree, votes=of_leaves(tree, votes))


def of_leaves(tree: Tree, votes: Integers) -> Integers:
    """The votes `[node, class]` of the leaves, and 0 at inner nodes."""
    return np.where((tree.kind == LEAF)[:, None], votes, 0)


FINENESS = 1000  # votes are rounded to thousandths, so that nearly equal values share a branch


def integer_votes(log_odds: Floats) -> Integers:
    """Votes of log-odds `[leaf, class]`, of the same shape and at least 0.

    Adding a constant to all classes of a leaf changes nothing. The votes of two classes have the
    same sum at every leaf of a tree, so SQL needs one of them.
    """
    two = log_odds.shape[1] == 2
    if two:
        log_odds = of_two(log_odds[:, 1] - log_odds[:, 0])
    votes = np.rint(log_odds * FINENESS).astype(np.int64) * (SCALE // FINENESS)
    least: Integers = votes.min(axis=1, keepdims=True)
    return votes - (least.min() if two else least)


def of_two(log_odds: Floats) -> Floats:
    """Log-odds `[leaf]` of the second of two classes, as log-odds of both."""
    return np.stack([-log_odds, log_odds], axis=1) / 2


def intercept(log_odds: Floats, request: Request, plan: Plan) -> Tree:
    """A tree without a split that votes for all rows, by log-odds `[class]`."""
    return Tree(
        kind=np.array([LEAF]),
        attribute=np.array([-1]),
        cell=np.array([0]),
        first=np.array([-1]),
        counts=np.array([request.histogram], dtype=np.int64),
        votes=integer_votes(log_odds[None]),
        noise=np.array([plan.row_noise(request.rows_per_unit)]),
    )
