"""Which attributes take another step, and how often random trees split by each."""

from __future__ import annotations

import numpy as np
import pytest

from dpforest_duckdb.postprocess.attribute_gains import (
    FittedValues,
    draw_weights,
    worth_another_step,
)


def fitted(*steps: float, hessian: float = 100.0) -> list[FittedValues]:
    """Attributes of two values, whose log-odds have moved by a step and by its opposite."""
    return [FittedValues(np.array([[step], [-step]]), np.full((2, 1), hessian)) for step in steps]


def test_attributes_that_moved_take_another_step_and_those_that_did_not_take_none() -> None:
    steps = fitted(0.0, 0.4, 0.0, 0.5, 0.001)
    assert worth_another_step(steps, 100.0, lambda number: 20.0 * number) == [1, 3]


def test_all_attributes_take_another_step_if_all_moved_alike_and_noise_is_small() -> None:
    steps = fitted(*[0.5] * 6)
    assert worth_another_step(steps, 60.0, lambda number: 10.0 * number) == list(range(6))


def test_fewer_attributes_take_a_step_if_noise_grows_faster_with_their_number() -> None:
    """As without a δ: the variance of noise is proportional to the square of the number."""
    steps = fitted(1.0, 0.5, 0.4, 0.3, 0.2)
    linear, square = (
        worth_another_step(steps, 2000.0, lambda number, p=power: 400.0 * number**p)
        for power in (1, 2)
    )
    assert 1 <= len(square) < len(linear)
    assert square == list(range(len(square))), "those that moved most"


def test_the_number_of_attributes_has_the_largest_gain() -> None:
    """The gain as the docstring has it, of every number of attributes."""
    random = np.random.default_rng(0)
    for before in (10.0, 300.0, 5000.0):
        steps = random.exponential(0.3, 7)
        hessians = random.uniform(50, 500, 7)
        each = [
            FittedValues(np.array([[step], [-step]]), np.full((2, 1), hessian))
            for step, hessian in zip(steps, hessians, strict=True)
        ]
        moved, noise = hessians * steps**2, before / hessians
        left = moved * noise / (moved + noise)
        totals = []
        for number in range(1, 8):
            again = before * number / 7 / hessians
            totals.append(np.sort(2 * left**2 / (left + again))[-number:].sum())
        chosen = worth_another_step(each, before, lambda number, b=before: b * number / 7)
        assert len(chosen) == 1 + int(np.argmax(totals))


def test_nothing_fails_where_nothing_moved_or_there_is_one_attribute() -> None:
    assert len(worth_another_step(fitted(0.0, 0.0), 10.0, float)) >= 1
    assert worth_another_step(fitted(0.3), 10.0, float) == [0]


def test_noisy_hessians_below_that_of_a_single_row_count_as_one() -> None:
    """A negative one would make an attribute worth a step, or unlikely to be drawn."""
    step = np.array([[1.0], [-1.0]])
    low, negative, none = (np.full((2, 1), hessian) for hessian in (0.25, -1e6, 0.0))
    clear = FittedValues(step, np.full((2, 1), 500.0))
    for hessians in (low, negative, none):
        few = [FittedValues(step, hessians), clear]
        with np.errstate(all="raise"):
            assert worth_another_step(few, 400.0, lambda number: 200.0 * number) == [1]
        odds = [np.array([[-0.5, 0.5], [0.5, -0.5]])] * 2
        assert draw_weights(odds, [hessians, low]) == pytest.approx([0.5, 0.5])


def test_half_of_the_draws_are_uniform_and_half_by_what_attributes_say() -> None:
    hessians = [np.full((2, 1), 10.0)] * 3
    log_odds = [np.array([[-s / 2, s / 2], [s / 2, -s / 2]]) for s in (1.0, 2.0, 0.0)]
    weights = draw_weights(log_odds, hessians)
    assert weights == pytest.approx([1 / 6 + 0.1, 1 / 6 + 0.4, 1 / 6])
    assert draw_weights([odds * 0 for odds in log_odds], hessians) == pytest.approx([1 / 3] * 3)


def test_a_shift_of_all_classes_or_of_all_values_says_nothing() -> None:
    hessians = [np.array([[30.0, 5.0, 5.0], [10.0, 5.0, 5.0]])] * 2
    one = np.array([[0.5, -0.3, 0.1], [-0.2, 0.4, 0.0]])
    for shift in (np.array([[0.7], [-0.4]]), np.array([[0.2, -0.6, 0.9]])):
        assert draw_weights([one, one + shift], hessians) == pytest.approx([0.5, 0.5])
