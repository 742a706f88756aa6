"""Sums of trees of few attributes give the votes that the trees give together."""

from __future__ import annotations

import numpy as np
import pytest

from dpforest_duckdb.engine.coded_rows import vote_grids
from dpforest_duckdb.engine.coded_rows.vote_grids import VoteGrid, added

CELLS = (4, 3, 5, 2, 6)


@pytest.mark.parametrize("most", [1, 30, 1000])
def test_sums_of_grids_have_the_votes_of_all_grids(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(vote_grids, "MAX_MORE_CELLS", most)
    random = np.random.default_rng(most)
    paths = [(), (0,), (0, 1), (0, 2), (3,), (1, 0), (4, 3), (), (2,), (0, 2)]
    grids = [
        VoteGrid(path, random.integers(-9, 9, (*(CELLS[a] for a in path), 2))) for path in paths
    ]
    sums = added(grids)
    assert len(sums) < len(grids)
    assert len({frozenset(each.attributes) for each in sums}) == len(sums)
    for code in random.integers(0, CELLS, (40, len(CELLS))):
        given, found = (
            sum(each.votes[tuple(code[list(each.attributes)])] for each in some)
            for some in (grids, sums)
        )
        assert np.array_equal(given, found)
        assert np.shape(found) == (2,)


def test_a_sum_has_few_cells_or_those_of_one_of_its_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vote_grids, "MAX_MORE_CELLS", 30)
    wide = VoteGrid((0, 2, 4), np.zeros((4, 5, 6, 1), np.int64))
    narrow = [VoteGrid((a,), np.zeros((CELLS[a], 1), np.int64)) for a in range(5)]
    assert [each.attributes for each in added([wide, *narrow])] == [(0, 2, 4), (1, 3)]
