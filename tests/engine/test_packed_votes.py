"""Votes for several scores in one integer: sums of packed votes hold the sums of votes."""

from __future__ import annotations

import numpy as np
import pytest

from dpforest_duckdb.engine.packed_votes import WORD, PackedVotes
from dpforest_duckdb.sql import Sql


@pytest.mark.parametrize("scores", [1, 2, 7])
@pytest.mark.parametrize("largest", [0, 1, 10**4, 2**40])
def test_scores_are_the_sums_of_votes(scores: int, largest: int) -> None:
    random = np.random.default_rng(scores)
    trees = [
        1000 * random.integers(-largest, largest + 1, (nodes, scores)) for nodes in (1, 4, 9, 200)
    ]
    trees[1][:, 0] = 5000  # a tree that tells nothing of a score
    packed = PackedVotes.of(trees)
    for _ in range(50):
        leaves = [int(random.integers(len(votes))) for votes in trees]
        sums = [sum(packed.votes[at + leaves[tree]] for tree, at in word) for word in packed.words]
        assert all(0 <= total < 2**WORD for total in sums)
        found = [eval(sql) for sql in packed.scores([Sql(total) for total in sums])]
        wanted = sum(votes[leaf] for votes, leaf in zip(trees, leaves, strict=True))
        assert found == np.asarray(wanted).tolist()


def test_votes_that_no_integer_holds_are_refused() -> None:
    """Without the check, bits of one score would run into the next, and nothing would show it."""
    half = np.array([[-(2**60), 0], [2**60, 1]])
    assert PackedVotes.of([half] * 2).bits == 63
    with pytest.raises(AssertionError, match="millionths"):
        PackedVotes.of([half] * 4)
