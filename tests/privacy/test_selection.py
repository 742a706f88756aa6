"""Selection: exponents exact whatever their size, mechanisms as their closed forms say."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from chi_square import fits
from closed_form import CLOSED_FORMS, Choose, executions
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpforest_duckdb.privacy import selection
from dpforest_duckdb.privacy.amounts import MAX_EPSILON, NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.sampler import bernoulli_exp
from dpforest_duckdb.privacy.selection import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    Exponents,
    Mechanism,
    exponential_mechanism,
    exponents,
)

BITS = SecureBits()
each_mechanism = pytest.mark.parametrize(
    "mechanism", [PERMUTE_AND_FLIP, EXPONENTIAL], ids=lambda m: m.name
)


def exact(exponent: Exponents) -> list[list[Fraction]]:
    """Exponents as fractions, `[node][candidate]`."""
    numerator = exponent.numerator.astype(object)
    if exponent.whole is not None:
        numerator = numerator + exponent.whole.astype(object) * exponent.denominator
    return [[Fraction(x, exponent.denominator) for x in row] for row in numerator.tolist()]


def rational(*numerators: int, denominator: int = 1) -> Exponents:
    return Exponents(np.array([numerators]), denominator)


utilities = st.lists(st.integers(-(2**33), 2**33), min_size=3, max_size=3)
masks = st.lists(st.booleans(), min_size=3, max_size=3).filter(any)
nodes = st.lists(st.tuples(utilities, masks), min_size=1, max_size=4)
LARGEST = MAX_EPSILON * NANO


@settings(deadline=None)
@given(
    nodes,
    st.one_of(st.integers(1, 10 * NANO), st.integers(1, LARGEST)),
    st.integers(1, 2000),
    st.booleans(),
)
@example([([-(2**33), 0, 2**33], [True] * 3)], LARGEST, 1, True)
@example([([-(2**33), 0, 2**33], [True] * 3)], LARGEST - 1, 1, False)
@example([([-(2**33), 0, 2**33], [True] * 3)], LARGEST - 1, 2000, False)
@example([([-(2**33), 0, 2**33], [True] * 3)], 1, 2000, False)
@example([([5, 3, 9], [True, True, False])], 333_333_333, 6, False)
def test_exponents_are_exact(
    rows: list[tuple[list[int], list[bool]]], epsilon: int, sensitivity: int, monotone: bool
) -> None:
    worth = np.array([row[0] for row in rows])
    allowed = np.array([row[1] for row in rows])
    found = exact(exponents(worth, allowed, epsilon, sensitivity, monotone))
    for row, (values, mask) in zip(found, rows, strict=True):
        best = max(value for value, ok in zip(values, mask, strict=True) if ok)
        for exponent, value, ok in zip(row, values, mask, strict=True):
            gap = best - value if ok else 0
            assert exponent == Fraction(gap * epsilon, sensitivity * NANO * (2 - monotone))


def test_k_rows_per_unit_divide_the_exponents_by_k() -> None:
    worth, allowed = np.array([[0, -3, -7]]), np.ones((1, 3), dtype=bool)
    one, five = (exact(exponents(worth, allowed, NANO, 2 * k, True))[0] for k in (1, 5))
    assert one == [5 * x for x in five]


@pytest.mark.parametrize(
    ("worth", "mask", "epsilon", "sensitivity"),
    [
        ([[0, 0], [1, 2]], [[True, False], [False, False]], NANO, 1),
        ([[0, 1]], [[True, True]], 0, 1),
        ([[0, 1]], [[True, True]], NANO, 0),
    ],
)
def test_exponents_refuse_arguments_that_no_caller_should_pass(
    worth: list[list[int]], mask: list[list[bool]], epsilon: int, sensitivity: int
) -> None:
    with pytest.raises(ValueError, match=r"ε|candidate"):
        exponents(np.array(worth), np.array(mask), epsilon, sensitivity, True)


@pytest.mark.parametrize("epsilon", [1, NANO, 10**6 * NANO])
def test_utilities_of_any_size_give_exponents_and_never_raise(epsilon: int) -> None:
    """Utilities are private, so one out of range is replaced by the limit and raises nothing."""
    most, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    worth = np.array([[most, 2**62, 2**61, 2**59, 0, -(2**61), least]])
    found = exact(exponents(worth, np.ones_like(worth, dtype=bool), epsilon, 1, True))[0]
    assert found[0] == 0
    assert found == sorted(found)
    assert all(0 <= exponent < 2**62 for exponent in found)
    near = exact(exponents(worth - [[0, 0, 0, 1, 0, 0, 0]], worth == worth, epsilon, 1, True))[0]
    assert 0 <= near[3] - found[3] <= Fraction(epsilon, NANO), "one unit changes it by ε at most"


@each_mechanism
def test_a_node_without_a_sure_candidate_is_refused(mechanism: Mechanism) -> None:
    for mask in ([False, False], [False, True]):
        with pytest.raises(ValueError, match="exponent 0"):
            mechanism.draw(rational(0, 1), np.array([mask]), BITS)
    whole = Exponents(np.zeros((1, 2), dtype=np.int64), 1, np.array([[1, 2]]))
    with pytest.raises(ValueError, match="exponent 0"):
        mechanism.draw(whole, np.array([[True, True]]), BITS)


@each_mechanism
@pytest.mark.parametrize(
    ("gaps", "mask"),
    [([0, 1, 2], [1, 1, 1]), ([3, 0, 0], [1, 1, 1]), ([1, 0, 0, 1], [1, 0, 1, 1])],
)
def test_every_execution_adds_up_to_the_closed_form(
    monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, gaps: list[int], mask: list[int]
) -> None:
    """With coins of 2^−exponent, which have exact probabilities, the code is its closed form."""
    allowed = np.array([mask], dtype=bool)

    def run(choose: Choose) -> int:
        def coins(
            numerator: NDArray[np.int64], denominator: int, bits: object
        ) -> NDArray[np.bool_]:
            sides = [Fraction(1, 2 ** int(x)) for x in numerator]
            return np.array([choose([1 - p, p]) for p in sides], dtype=bool)

        def uniform(bounds: NDArray[np.int64], bits: object) -> NDArray[np.int64]:
            return np.array([choose([Fraction(1, int(b))] * int(b)) for b in bounds])

        monkeypatch.setattr(selection, "bernoulli_exp", coins)
        monkeypatch.setattr(selection, "uniform_below", uniform)
        return int(mechanism.draw(rational(*gaps), allowed, BITS)[0])

    found, missing = executions(run, Fraction(1, 1000))
    expected = CLOSED_FORMS[mechanism](
        [Fraction(ok, 2**gap) for gap, ok in zip(gaps, mask, strict=True)]
    )
    if mechanism is PERMUTE_AND_FLIP:
        assert not missing
        assert [found.get(i, 0) for i in range(len(gaps))] == expected
    else:  # proposals go on for ever: what was left out is bounded
        assert missing < Fraction(1, 4)
        for number, p in enumerate(expected):
            assert found.get(number, 0) <= p <= found.get(number, 0) + missing


CASES = {
    "spread": (rational(0, 3, 7, 12, 1, 30, denominator=10), [1, 1, 1, 1, 1, 1]),
    "ties": (rational(0, 0, 5, 5, denominator=3), [1, 1, 1, 1]),
    "masked": (rational(0, 0, 1, 0, denominator=2), [0, 1, 1, 0]),
    "far": (rational(0, 10**15, 4 * 10**15, denominator=10**15), [1, 1, 1]),
    "parts": (Exponents(np.array([[0, 1, 2]]), 4, np.array([[0, 1, 0]])), [1, 1, 1]),
    "many": (Exponents(np.arange(40)[None, :], 20), [1] * 40),
}


@each_mechanism
@pytest.mark.parametrize("case", CASES)
def test_candidates_are_drawn_as_often_as_they_should(mechanism: Mechanism, case: str) -> None:
    exponent, mask = CASES[case]
    nodes = 60_000 if len(mask) < 10 else 10_000
    allowed = np.tile(np.array(mask, dtype=bool), (nodes, 1))
    spread = Exponents(
        np.repeat(exponent.numerator, nodes, axis=0),
        exponent.denominator,
        None if exponent.whole is None else np.repeat(exponent.whole, nodes, axis=0),
    )
    drawn = mechanism.draw(spread, allowed, BITS)
    coins = [
        Fraction(math.exp(-x) * ok).limit_denominator(10**9)
        for x, ok in zip(exact(exponent)[0], mask, strict=True)
    ]
    expected = [float(p) for p in CLOSED_FORMS[mechanism](coins)]
    assert fits(np.bincount(drawn, minlength=len(mask)), expected)


@each_mechanism
def test_each_node_has_its_own_draw(mechanism: Mechanism) -> None:
    """Nodes of different shape in one batch, and the draws of different nodes are independent."""
    nodes = 60_000
    gaps = np.tile(np.array([[0, 1, 3], [2, 0, 0]]), (nodes // 2, 1))
    allowed = np.tile(np.array([[True] * 3, [True, True, False]]), (nodes // 2, 1))
    drawn = mechanism.draw(Exponents(gaps, 2), allowed, BITS).reshape(-1, 2)
    form = CLOSED_FORMS[mechanism]
    first = form([Fraction(math.exp(-x / 2)) for x in (0, 1, 3)])
    second = form([Fraction(math.exp(-1)), Fraction(1), Fraction(0)])
    both = np.outer([float(p) for p in first], [float(p) for p in second])
    assert fits(np.bincount(drawn @ np.array([3, 1]), minlength=9), both.ravel())


@each_mechanism
def test_no_nodes_no_draws(mechanism: Mechanism) -> None:
    empty = np.zeros((0, 4), dtype=np.int64)
    exponent = exponents(empty, empty == 0, NANO, 1, True)
    assert mechanism.draw(exponent, empty == 0, BITS).shape == (0,)


def test_of_several_proposals_at_a_time_the_first_that_is_accepted_counts() -> None:
    nodes, gaps, weights = 60_000, [4, 1, 0, 9], np.array([1, 2, 1, 40])
    exponent = rational(*gaps, denominator=2)
    spread = Exponents(np.repeat(exponent.numerator, nodes, axis=0), exponent.denominator)
    everything = np.ones((nodes, len(gaps)), dtype=bool)
    drawn = exponential_mechanism(spread, everything, BITS, weights)
    likely = weights * np.exp(-np.array(gaps) / 2)
    assert fits(np.bincount(drawn, minlength=len(gaps)), list(likely / likely.sum()))


def test_a_candidate_that_is_rarely_proposed_takes_few_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NULL beside numbers has a weight of one in a million, and may be far better than they are."""
    turns = 0

    def counted(*arguments: Any) -> Any:
        nonlocal turns
        turns += 1
        return bernoulli_exp(*arguments)

    monkeypatch.setattr(selection, "bernoulli_exp", counted)
    exponent = rational(0, 2**40)
    drawn = exponential_mechanism(exponent, exponent.numerator >= 0, BITS, np.array([1, 2**20]))
    assert drawn == 0
    assert turns < 16 + 16 * 50


def test_many_proposals_among_many_candidates_take_little_memory() -> None:
    """How many proposals a node needs depends on private rows."""
    candidates = 2_000
    gaps = np.full((1, candidates), 2**40)
    gaps[0, 7] = 0
    weights = np.full(candidates, 2**9)
    weights[7] = 1
    tracemalloc.start()
    try:
        drawn = exponential_mechanism(Exponents(gaps, 1), gaps >= 0, BITS, weights)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert drawn == 7
    assert most < 2**26


def test_the_gate_sees_the_other_mechanism_and_a_lost_factor() -> None:
    exponent, _ = CASES["spread"]
    nodes = 60_000
    allowed = np.ones((nodes, 6), dtype=bool)
    doubled = Exponents(np.repeat(exponent.numerator * 2, nodes, axis=0), exponent.denominator)
    spread = Exponents(np.repeat(exponent.numerator, nodes, axis=0), exponent.denominator)
    coins = [Fraction(math.exp(-x)) for x in exact(exponent)[0]]
    expected = [float(p) for p in CLOSED_FORMS[PERMUTE_AND_FLIP](coins)]
    for mechanism, weights in ((PERMUTE_AND_FLIP, doubled), (EXPONENTIAL, spread)):
        drawn = mechanism.draw(weights, allowed, BITS)
        assert not fits(np.bincount(drawn, minlength=6), expected)


def test_a_rate_too_fine_for_a_coin_is_rounded_down() -> None:
    """ε = .01 over a sensitivity of 5 · 2^20: the denominator passes 2^53."""
    utilities = np.array([[0, 5 * 2**20, 2**20]])
    made = exponents(utilities, np.ones((1, 3), dtype=np.bool_), 10_000_001, 5 * 2**20, False)
    assert made.denominator <= 2**53
    asked = [Fraction(10_000_001 * gap, 2 * NANO * 5 * 2**20) for gap in (5 * 2**20, 0, 2**22)]
    for got, exactly in zip(exact(made)[0], asked, strict=True):
        assert exactly * (1 - Fraction(1, 10**6)) <= got <= exactly
