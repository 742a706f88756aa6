"""Sensitivity and direction of every utility, on all small counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from dpforest_duckdb.splits.utilities import (
    GINI,
    MAX_COUNT,
    MAX_ROWS,
    WEIGHTED_MAX,
    Utility,
    gini,
    max_count,
    published_gini,
    published_sensitivity,
)

each_utility = pytest.mark.parametrize("utility", [GINI, MAX_COUNT], ids=lambda u: u.name)
each_size = pytest.mark.parametrize(("classes", "most"), [(2, 60), (3, 25)])


def branches(classes: int, most: int) -> NDArray[np.int64]:
    """All class counts of one branch up to `most` per class: `[branch, 1, class]`."""
    return np.array(list(product(range(most + 1), repeat=classes)))[:, None]


def changes(utility: Utility, counts: NDArray[np.int64], rows: int = 1) -> NDArray[np.int64]:
    """How the utility changes with `rows` more, of any classes: `[classes of the rows, branch]`."""
    more = [m for m in product(range(rows + 1), repeat=counts.shape[-1]) if sum(m) == rows]
    return np.stack([utility.function(counts + m) - utility.function(counts) for m in more])


def holds(utility: Utility, classes: int, most: int, rows: int = 1) -> bool:
    """Whether no change passes the bound, and all go in one direction if that is claimed."""
    found = changes(utility, branches(classes, most), rows)
    one_way = (found >= 0).all() or (found <= 0).all()
    return bool((abs(found) <= utility.sensitivity * rows).all() and one_way >= utility.monotone)


@each_size
@each_utility
def test_sensitivity_and_direction(utility: Utility, classes: int, most: int) -> None:
    assert holds(utility, classes, most)


@pytest.mark.parametrize("rows", [2, 3, 7])
@each_utility
def test_k_rows_change_k_times_as_much(utility: Utility, rows: int) -> None:
    assert holds(utility, 3, 12, rows)


def test_smaller_sensitivities_do_not_hold() -> None:
    assert not holds(replace(GINI, sensitivity=1), 2, 6)
    assert not holds(replace(MAX_COUNT, sensitivity=0), 2, 2)


def test_a_false_claim_of_one_direction_does_not_hold() -> None:
    purity = Utility("binary purity", lambda c: abs(c[..., 0] - c[..., 1]).sum(axis=-1), 1, True)
    assert not holds(purity, 2, 3)
    assert holds(replace(purity, monotone=False), 2, 3)


def test_the_bound_of_gini_is_reached_and_not_far_off_before_rounding() -> None:
    """(6,1) → (6,2) changes the rounded form by 2; (39,0) → (39,1) the other by 1.95."""
    counts = np.array([[[6, 1]], [[6, 2]], [[39, 0]], [[39, 1]]])
    assert gini(counts).tolist() == [-1, -3, 0, -1]

    def impurity(*counts: int) -> Fraction:
        return sum(counts) - Fraction(sum(c * c for c in counts), sum(counts))

    assert impurity(39, 1) - impurity(39, 0) == Fraction(39, 20)
    found = [impurity(a, b + 1) - impurity(a, b) for a in range(1, 80) for b in range(80)]
    assert 0 <= min(found) <= max(found) < 2


@settings(deadline=None)
@given(arrays(np.int64, (4, 2, 3, 2), elements=st.integers(0, 10**9)))
def test_utilities_add_up_over_branches(counts: NDArray[np.int64]) -> None:
    def one(node: int, candidate: int) -> tuple[int, int]:
        worth, right = 0, 0
        for branch in counts[node, candidate].tolist():
            n = sum(branch)
            worth -= (n * n - sum(c * c for c in branch)) // n if n else 0
            right += max(branch)
        return worth, right

    expected = [[one(node, candidate) for candidate in range(2)] for node in range(4)]
    found = np.stack([gini(counts), max_count(counts)], axis=-1)
    assert found.dtype == np.int64
    assert found.tolist() == [[list(pair) for pair in row] for row in expected]


BRANCH = st.integers(0, 2**59) | st.integers(-99, 99).map(lambda more: MAX_ROWS + more)


@pytest.mark.parametrize("utility", [GINI, MAX_COUNT, WEIGHTED_MAX], ids=lambda u: u.name)
@settings(deadline=None, max_examples=60)
@given(
    counts=arrays(np.int64, (3, 2, 3), elements=BRANCH | st.integers(0, 9)),
    place=st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)),
)
def test_sensitivity_and_direction_hold_for_counts_of_any_size(
    utility: Utility, counts: NDArray[np.int64], place: tuple[int, int, int]
) -> None:
    """Where n² passes 64 bits too, and where only one of the two tables is so large."""
    more = counts.copy()
    more[place] += 1
    changed = utility.function(more) - utility.function(counts)
    assert changed.dtype == np.int64
    assert abs(changed).max() <= utility.sensitivity
    assert not utility.monotone or (changed >= 0).all() or (changed <= 0).all()


@settings(deadline=None)
@given(arrays(np.int64, (3, 2, 2), elements=BRANCH))
def test_gini_is_exact_for_counts_of_any_size(counts: NDArray[np.int64]) -> None:
    exact = [
        -sum((sum(b) ** 2 - sum(c * c for c in b)) // max(sum(b), 1) for b in table)
        for table in counts.tolist()
    ]
    assert gini(counts).tolist() == exact


def test_published_gini_and_its_sensitivity() -> None:
    counts = np.array([[[3, 1], [0, 2]], [[0, 0], [0, 0]], [[0, 0], [5, 5]]])
    assert published_gini(counts) == pytest.approx([-4 / 6 * (1 - 10 / 16), 0, -0.5])
    assert published_sensitivity(np.array([[1], [100]])) == pytest.approx([0.5, 0.0196], abs=1e-4)
