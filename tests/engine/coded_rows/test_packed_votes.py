"""Votes for several classes in one integer: weighted sums hold the weighted sums of votes."""

from __future__ import annotations

import numpy as np
import pytest

from dpforest_duckdb.engine.coded_rows.packed_votes import WORD, PackedVotes
from dpforest_duckdb.sql import Column, Sql
from dpforest_duckdb.tree import SCALE

MIXTURES = [(20, 20), (20, 7), (0, 20), (3, 0)]


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("largest", [0, 1, 10**4, 2**40])
def test_differences_of_classes_are_those_of_weighted_votes(classes: int, largest: int) -> None:
    random = np.random.default_rng(classes)
    groups = [
        [1000 * random.integers(-largest, largest + 1, (n, classes)) for n in places]
        for places in ((1, 4), (9, 200, 3))
    ]
    groups[0][1][:, 0] = groups[0][1].min()  # a look-up that tells nothing of a class
    packed = PackedVotes.of(groups, MIXTURES, SCALE)
    for _ in range(50):
        places = [[int(random.integers(len(votes))) for votes in group] for group in groups]
        wanted = [
            sum(votes[place] for votes, place in zip(group, at, strict=True))
            for group, at in zip(groups, places, strict=True)
        ]
        for weights in MIXTURES:
            sums = [
                sum(
                    weights[group] * packed.votes[first + places[group][look_up]]
                    for group, look_ups in word.items()
                    for look_up, first in look_ups
                )
                for word in packed.words
            ]
            assert all(0 <= total < 2 ** (WORD * (1 + packed.has_halves)) for total in sums)
            columns = [Column(Sql(total), Sql(total)) for total in sums]  # a name is its value
            if halves := packed.halves(columns, Sql):
                values = [Sql(eval(half.value[5:-11])) for half in halves]  # CAST(… AS BIGINT)
                assert all(0 <= int(half) < 2**WORD for half in values)
                columns = [Column(half, half) for half in values]
            found = np.array([eval(sql) for sql in packed.of_classes(columns)])
            expected = sum(w * votes for w, votes in zip(weights, wanted, strict=True))
            apart = expected - expected[0]
            assert ((found - found[0]) * packed.unit == apart).all()


def test_votes_that_no_integer_holds_are_refused() -> None:
    """Without the check, bits of one class would run into the next, and nothing would show it."""
    half = np.array([[0, 0], [2**57, 1]])
    assert PackedVotes.of([[half], [half]], [(16, 16)], SCALE).bits == 63
    with pytest.raises(AssertionError, match="millionths"):
        PackedVotes.of([[half], [half]], [(64, 64)], SCALE)
