"""The exact samplers: every execution where that is possible, the χ² gate where it is not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from chi_square import critical, fits, fits_laplace
from closed_form import Choose, executions
from numpy.typing import NDArray

from dpforest_duckdb.privacy import sampler
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.sampler import (
    bernoulli_exp,
    discrete_laplace,
    uniform,
    uniform_below,
)

BITS = SecureBits()
DRAWS = 150_000
SCALES = [(1, 2), (1, 1), (3, 1), (6, 1), (7, 1), (10, 1), (25, 2), (33, 10), (20, 3), (100, 1)]


class Script:
    """Bits with given words."""

    private = False

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def words(self, n: int) -> NDArray[np.uint64]:
        said, self._words = self._words[:n], self._words[n:]
        return np.array(said, dtype=np.uint64)


def test_the_critical_value() -> None:
    known = {1: 23.928, 3: 30.665, 10: 46.863, 100: 182.127, 1000: 1227.152}  # scipy's chi2.isf
    for freedom, value in known.items():
        assert value < critical(freedom) < value * 1.16


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**32 - 5, 3**39, 2**62 - 1, 2**62])
def test_uniform_below_refuses_exactly_the_words_past_the_last_multiple(bound: int) -> None:
    multiple = 2**64 // bound * bound
    bounds = np.array([bound])
    assert uniform_below(bounds, Script(multiple - 1)) == bound - 1
    assert uniform_below(bounds, Script(bound - 1)) == bound - 1
    if multiple < 2**64:
        assert uniform_below(bounds, Script(multiple, 2**64 - 1, 0)) == 0


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**32 - 5, 3**39, 3 * 2**60, 2**62 - 1, 2**62])
def test_draws_with_one_bound_are_those_with_many_equal_bounds(bound: int) -> None:
    multiple = 2**64 // bound * bound
    words = [0, bound - 1, multiple - 1, multiple % 2**64, 2**64 - 1, *range(10)]
    found = uniform(5, bound, Script(*words))
    assert found.tolist() == uniform_below(np.full(5, bound), Script(*words)).tolist()


def test_uniform_below_redraws_only_what_was_refused() -> None:
    refused = 2**64 - 1
    found = uniform_below(np.array([[3, 3], [2, 5]]), Script(4, refused, refused, 8, refused, 5))
    assert found.tolist() == [[1, 2], [1, 3]]


@pytest.mark.parametrize("bound", [0, -1, 2**62 + 1])
def test_uniform_below_refuses_bounds_out_of_range(bound: int) -> None:
    with pytest.raises(ValueError, match="bound"):
        uniform_below(np.array([1, bound]), BITS)
    with pytest.raises(ValueError, match="bound"):
        uniform(1, bound, BITS)


@pytest.mark.parametrize("bound", [2, 3, 7, 1000])
def test_uniform_below_is_uniform(bound: int) -> None:
    draws = uniform_below(np.full(DRAWS, bound), BITS)
    assert fits(np.bincount(draws, minlength=bound), np.full(bound, 1 / bound))


def test_uniform_below_is_uniform_where_a_quarter_of_the_words_is_refused() -> None:
    bound = 3 * 2**60
    draws = uniform_below(np.full(DRAWS, bound), BITS) // 2**60
    assert fits(np.bincount(draws, minlength=3), np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [(0, 1), (1, 1), (2, 1), (1, 2), (3, 2), (2, 3), (4, 4), (5, 4), (1, 10)],
)
def test_every_execution_of_a_coin(
    monkeypatch: pytest.MonkeyPatch, numerator: int, denominator: int
) -> None:
    def run(choose: Choose) -> bool:
        def uniform(size: int, bound: int, bits: object) -> NDArray[np.int64]:
            return np.array([choose([Fraction(1, bound)] * bound) for _ in range(size)])

        monkeypatch.setattr(sampler, "uniform", uniform)
        return bool(bernoulli_exp(np.array([numerator]), denominator, BITS)[0])

    found, missing = executions(run, Fraction(1, 20_000))
    heads, truth = found.get(True, Fraction(0)), math.exp(-numerator / denominator)
    assert missing < Fraction(1, 100)
    assert heads - Fraction(1, 10**12) <= truth <= heads + missing + Fraction(1, 10**12)


@pytest.mark.parametrize("denominator", [1, 3, 1000, 10**9, 2**53])
def test_coins_show_heads_as_often_as_they_should(denominator: int) -> None:
    exponents = (0, 0.02, 0.3, 1, 1.7, 5)
    numerators = np.array([round(x * denominator) for x in exponents])
    heads = bernoulli_exp(np.repeat(numerators, DRAWS // 5), denominator, BITS)
    for numerator, number in zip(numerators, heads.reshape(6, -1).sum(axis=1), strict=True):
        p = math.exp(-numerator / denominator)
        assert fits([number, DRAWS // 5 - number], [p, 1 - p])


def test_a_huge_exponent_is_tails_and_costs_little() -> None:
    numerator = np.full((3, 4), 2**63 - 1)
    assert not bernoulli_exp(numerator, 1, BITS).any()
    assert bernoulli_exp(numerator * 0, 2**53, BITS).all()
    assert bernoulli_exp(numerator[:0], 1, BITS).shape == (0, 4)


@pytest.mark.parametrize(("numerator", "denominator"), [(-1, 1), (1, 0), (1, -1), (1, 2**53 + 1)])
def test_coins_refuse_what_could_overflow(numerator: int, denominator: int) -> None:
    with pytest.raises(ValueError, match="exponent"):
        bernoulli_exp(np.array([0, numerator]), denominator, BITS)


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_is_drawn(scale: tuple[int, int]) -> None:
    draws = discrete_laplace(DRAWS, *scale, BITS)
    assert draws.dtype == np.int64
    assert len(draws) == DRAWS
    assert fits_laplace(draws, scale[0] / scale[1])


def test_the_order_of_draws_reveals_nothing() -> None:
    draws = discrete_laplace(DRAWS, 3, 1, BITS)
    assert fits_laplace(draws[: DRAWS // 3], 3)
    assert fits_laplace(draws[-DRAWS // 3 :], 3)
    signs = np.sign(draws).reshape(-1, 2) @ np.array([3, 1]) + 4  # pairs of neighbours
    zero = (1 - math.exp(-1 / 3)) / (1 + math.exp(-1 / 3))
    one = np.array([(1 - zero) / 2, zero, (1 - zero) / 2])
    assert fits(np.bincount(signs, minlength=9), np.outer(one, one).ravel())


@pytest.mark.parametrize("scale", [(2**53, 1), (1, 2**62), (2**53, 2**62 - 1), (10**9, 333333333)])
def test_discrete_laplace_at_the_limits(scale: tuple[int, int]) -> None:
    draws = discrete_laplace(20_000, *scale, BITS)
    expected = scale[0] / scale[1]
    mean = abs(draws).mean()  # with a spread of one scale: 6 standard errors
    exact = 1 / math.sinh(1 / expected) if expected > 0.01 else 0
    assert abs(mean - exact) <= 6 * (exact + exact**0.5) / math.sqrt(20_000)


@pytest.mark.parametrize("scale", [(0, 1), (1, 0), (-1, 1), (2**53 + 1, 1), (1, 2**62 + 1)])
def test_discrete_laplace_refuses_what_could_overflow(scale: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="scale"):
        discrete_laplace(1, *scale, BITS)
