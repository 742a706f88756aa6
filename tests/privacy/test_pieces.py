"""Pieces that the published systems add: utilities of whole nodes, weighted draws, labels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from chi_square import fits
from numpy.typing import NDArray

from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import ExactNoise, laplace_deviation
from dpforest_duckdb.privacy.selection import Exponents, draw_uniformly, exponential_mechanism
from dpforest_duckdb.recipes.leaf_queries import LABEL, LEAF_COUNTS, SMOOTH_LABEL
from dpforest_duckdb.splits.utilities import (
    BALANCE,
    GAIN_AND_RATIO,
    GAIN_OF_RANGE,
    GINI,
    INFORMATION_GAIN,
    MAX_COUNT,
    UTILITY_PARTS,
    WEIGHTED_MAX,
    Utility,
    with_factor_2,
)

BITS = SecureBits()
UTILITIES = (
    *(BALANCE, WEIGHTED_MAX, GINI, MAX_COUNT),
    *(INFORMATION_GAIN, GAIN_OF_RANGE, GAIN_AND_RATIO),
)


def tables(branches: int, classes: int, most: int) -> NDArray[np.int64]:
    """All counts of a node with that many in a cell: `[table, branch, class]`."""
    cells = np.array(list(product(range(most + 1), repeat=branches * classes)), dtype=np.int64)
    return cells.reshape(-1, branches, classes)


def changes(utility: Utility, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """By a row more in each cell: `[cell, table]`."""
    rows = np.eye(counts[0].size, dtype=np.int64).reshape(-1, *counts[0].shape)
    return np.stack([utility.function(counts + row) - utility.function(counts) for row in rows])


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: u.name)
@pytest.mark.parametrize(("branches", "classes", "most"), [(2, 2, 12), (2, 3, 4), (3, 2, 4)])
def test_whole_nodes_keep_their_sensitivity_and_direction(
    utility: Utility, branches: int, classes: int, most: int
) -> None:
    if utility is BALANCE and branches != 2:
        pytest.skip("balance is of two branches")
    found = changes(utility, tables(branches, classes, most))
    assert abs(found).max() <= utility.sensitivity
    if utility.monotone:
        assert (found >= 0).all() or (found <= 0).all()


def test_what_is_not_monotone_changes_both_ways_and_needs_its_factor_2() -> None:
    for utility in (BALANCE, WEIGHTED_MAX, INFORMATION_GAIN):
        found = changes(utility, tables(2, 2, 12))
        assert found.min() < 0 < found.max()
        assert not utility.monotone
    assert not with_factor_2(GINI).monotone


def test_smaller_sensitivities_do_not_hold() -> None:
    assert abs(changes(BALANCE, tables(2, 2, 3))).max() == 1
    assert abs(changes(WEIGHTED_MAX, tables(2, 2, 12))).max() == 1


def test_a_bounded_utility_stays_in_its_range() -> None:
    pure = np.array([[[1000, 0], [0, 1000]], [[500, 500], [500, 500]]])
    assert GAIN_OF_RANGE.function(pure).tolist() == [UTILITY_PARTS, 0]
    assert GAIN_AND_RATIO.function(pure).tolist() == [UTILITY_PARTS, 0]
    lopsided = np.array([[[1, 0], [0, 10**6]]])
    assert 0 <= GAIN_AND_RATIO.function(lopsided)[0] <= UTILITY_PARTS
    assert GAIN_OF_RANGE.sensitivity == UTILITY_PARTS
    three = np.array([[[5, 0, 0], [0, 5, 0], [0, 0, 5]]])
    assert GAIN_OF_RANGE.function(three).tolist() == [UTILITY_PARTS], "log2 3 is its range"
    assert INFORMATION_GAIN.function(three).tolist() == [round(np.log2(3) * UTILITY_PARTS)]


def test_one_row_changes_information_gain_by_at_most_one_bit() -> None:
    """All tables of up to five rows; from six on, log2(n)/(n + 1) + h(1/(n + 1)) is below 1."""
    largest = dict.fromkeys(range(6), 0)
    for size in (2, 3):
        counts = tables(size, size, 5 if size == 2 else 2)
        rows = counts.sum(axis=(1, 2))
        few = counts[rows <= 5]
        found = abs(changes(INFORMATION_GAIN, few)).max(axis=0)
        for n in range(6):
            most = int(found[few.sum(axis=(1, 2)) == n].max())
            largest[n] = max(largest[n], most)
    assert largest[1] == INFORMATION_GAIN.sensitivity == UTILITY_PARTS
    assert max(most for n, most in largest.items() if n != 1) < 0.92 * UTILITY_PARTS
    # more classes or branches than rows do not matter: those without a row add nothing
    spread_out = np.eye(6, dtype=np.int64)[None]
    for n in range(6):
        apart = spread_out.copy()
        apart[:, range(n, 6), range(n, 6)] = 0
        assert abs(changes(INFORMATION_GAIN, apart)).max() <= UTILITY_PARTS
    for n in (6, 10, 100, 10**6):
        p = 1 / (n + 1)
        h = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
        assert np.log2(n) * p + h < 1


def test_weighted_draws_are_in_proportion_to_weight_and_exponent() -> None:
    draws = 40_000
    exponent = Exponents(np.tile([[0, 1, 2, 0]], (draws, 1)), 1)
    allowed = np.tile([[True, True, True, False]], (draws, 1))
    weights = np.array([1, 4, 2, 9])
    found = np.bincount(exponential_mechanism(exponent, allowed, BITS, weights), minlength=4)
    expected = np.array([1.0, 4 * np.exp(-1), 2 * np.exp(-2), 0.0])
    assert fits(found, expected / expected.sum())
    unweighted = np.array([1.0, np.exp(-1), np.exp(-2), 0.0])
    assert not fits(found, unweighted / unweighted.sum())
    with pytest.raises(ValueError, match="at least 1"):
        exponential_mechanism(exponent, allowed, BITS, np.array([1, 0, 2, 9]))


def test_a_random_draw_is_uniform_among_the_allowed() -> None:
    allowed = np.tile([[True, False, True, True]], (30_000, 1))
    found = np.bincount(draw_uniformly(allowed, BITS), minlength=4)
    assert fits(found, np.array([1, 0, 1, 1]) / 3)


def labels(counts: list[int], epsilon: float, k: int = 1) -> NDArray[np.int64]:
    """How often each class is the label of a leaf, of 40 000 drawn."""
    many = np.tile(np.array(counts, dtype=np.int64), (40_000, 1))
    labels = LABEL.ask(many, int(epsilon * NANO), k, ExactNoise(BITS), BITS)
    assert (labels.sum(axis=1) == 1).all()
    return labels.sum(axis=0)


def test_labels_by_permute_and_flip_are_monotone_and_scaled_by_rows_per_unit() -> None:
    """Two classes, gap g: the smaller wins with e^(−ε g / k) / 2."""
    for k in (1, 3):
        small = np.exp(-0.5 * 2 / k) / 2
        assert fits(labels([5, 3], 0.5, k), np.array([1 - small, small]))
    halved = np.exp(-0.5 * 2 / 2) / 2
    assert not fits(labels([5, 3], 0.5), np.array([1 - halved, halved])), "no factor 2"


def test_labels_have_no_noise_as_counts_do() -> None:
    assert np.isnan([leaf.deviation(NANO, 3) for leaf in (LABEL, SMOOTH_LABEL)]).all()
    assert LEAF_COUNTS.deviation(NANO, 3) == laplace_deviation(NANO, 3)


def test_labels_by_smooth_sensitivity_lose_more_than_they_claim() -> None:
    """(1, 0) against (2, 0) at ε = 1: a loss of 2.13 for a claim of 1."""

    def minority(counts: list[int]) -> float:
        many = np.tile(np.array(counts, dtype=np.int64), (200_000, 1))
        labels = SMOOTH_LABEL.ask(many, NANO, 1, ExactNoise(BITS), BITS)
        return float(labels[:, 1].mean())

    one, two = minority([1, 0]), minority([2, 0])
    assert one == pytest.approx(0.204, abs=0.01)
    assert two == pytest.approx(0.0243, abs=0.004)
    assert np.log(one / two) > 1.8


def test_equally_frequent_labels_are_equally_likely_by_smooth_sensitivity() -> None:
    """Whatever their order in the domain; an empty leaf has three of them."""
    for counts, likely in (([0, 0, 0], [1 / 3] * 3), ([4, 9, 9], [0.0, 0.5, 0.5])):
        many = np.tile(np.array(counts, dtype=np.int64), (100_000, 1))
        found = SMOOTH_LABEL.ask(many, 20 * NANO, 1, ExactNoise(BITS), BITS).mean(axis=0)
        assert found == pytest.approx(likely, abs=0.01)


@pytest.mark.parametrize("utility", [GINI, MAX_COUNT], ids=lambda u: u.name)
def test_the_best_of_two_points_keeps_sensitivity_and_direction(utility: Utility) -> None:
    """What `attribute_first` draws by: every row lies in a branch of each of two points."""
    random = np.random.default_rng(0)
    cells = random.integers(0, 5, size=(4000, 3, 2))  # three bins, cut after the first or second

    def best(counts: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.stack([counts[:, 0], counts[:, 1:].sum(axis=1)], axis=1)
        second = np.stack([counts[:, :2].sum(axis=1), counts[:, 2]], axis=1)
        return np.maximum(utility.function(first), utility.function(second))

    rows = np.eye(6, dtype=np.int64).reshape(6, 3, 2)
    found = np.stack([best(cells + row) - best(cells) for row in rows])
    assert abs(found).max() == utility.sensitivity or utility is GINI
    assert abs(found).max() <= utility.sensitivity
    assert (found >= 0).all() or (found <= 0).all()
