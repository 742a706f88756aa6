"""The figures by which the default decides, one by one; `test_auto_limits` has the decisions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.recipes.ours import auto_rules, constants
from dpforest_duckdb.request import Request

DELTA = ATTO // 10**5


def asked(rows: int, *, numbers: int = 4, words: int = 0, classes: int = 2, k: int = 1) -> Request:
    """A request for numbers and words at ε = 1, with a noisy number of rows."""
    made = [Attribute(f"n{n}", "numeric", lower=0, upper=1) for n in range(numbers)]
    made += [Attribute(f"w{n}", "categorical", ("x", "y", "z")) for n in range(words)]
    domain = Domain(tuple(made), "c", tuple(f"c{n}" for n in range(classes)))
    types = {each.name: DOUBLE if each.kind == "numeric" else VARCHAR for each in made}
    return Request(domain.bind({**types, "c": VARCHAR}), NANO, len(made), 1, k, rows=rows)


@pytest.mark.parametrize("delta", [0, DELTA])
def test_signal_falls_with_the_noise_of_a_unit_and_grows_with_rows(delta: int) -> None:
    """The noise grows with the rows of a unit, not with their square. Without rows nothing is
    known.
    """
    one = auto_rules.signal(replace(asked(1000), delta=delta))
    assert auto_rules.signal(replace(asked(1000, k=3), delta=delta)) == pytest.approx(one / 3)
    assert auto_rules.signal(replace(asked(5000), delta=delta)) == pytest.approx(one * 5)
    assert auto_rules.signal(replace(asked(0), delta=delta)) == math.inf


def test_without_a_delta_the_noise_of_a_sum_grows_with_the_attributes_that_share_epsilon() -> None:
    found = auto_rules.signal(asked(1000, numbers=4))
    assert found == pytest.approx(1000 / (4 * math.sqrt(2)) / math.sqrt(2))
    assert auto_rules.strength(asked(1000, k=4)) == 250
    assert auto_rules.strength(asked(0)) == math.inf


@pytest.mark.parametrize(
    ("histogram", "mixed"),
    [
        ((500, 500), 1), ((900, 100), 0.36), ((1000, 0), 0), ((1000, -40), 0), ((-5, -3), 1),
        ((), 1), ((1, 0), 0),
    ],
)  # fmt: skip
def test_classes_are_mixed_if_they_are_equally_frequent(
    histogram: tuple[int, ...], mixed: float
) -> None:
    """The Gini impurity, in parts of the largest; counts below 0 are 0."""
    assert auto_rules.mixed(replace(asked(1000), histogram=histogram)) == pytest.approx(mixed)


def test_three_classes_are_mixed_by_their_largest_impurity() -> None:
    request = replace(asked(1000, classes=3), histogram=(500, 500, 0))
    assert auto_rules.mixed(request) == pytest.approx(0.5 * 3 / 2)


@pytest.mark.parametrize(
    ("leaves", "depth"), [(0, 1), (1, 1), (2, 1), (2.8, 1), (2.9, 2), (5.7, 3), (250, 8), (1e9, 8)]
)
def test_a_tree_is_as_deep_as_its_leaves_allow(leaves: float, depth: int) -> None:
    """log2 of their number, rounded, from 1 to 8."""
    assert auto_rules.depth_for(leaves, 8) == depth


def test_fewer_leaves_are_filled_if_a_class_is_rare() -> None:
    even, rare = (replace(asked(2000), histogram=found) for found in ((1000, 1000), (1800, 200)))
    assert auto_rules.leaves(rare) == pytest.approx(0.36 * auto_rules.leaves(even))
    assert auto_rules.leaves(even) == pytest.approx(2000 / 2**1.5 / constants.ENOUGH)


@pytest.mark.parametrize(
    ("strength", "percent"),
    [(0, 10), (1, 10), (1000, 10), (4000, 5), (100_000, 1), (10**9, 0.1)],
)
@pytest.mark.parametrize("k", [1, 5])
def test_a_choice_costs_less_the_more_rows_there_are(strength: int, percent: float, k: int) -> None:
    """CHECK percent up to AMPLE, then by the root; a thousandth at least."""
    part = auto_rules.choice_part(asked(strength * k, k=k))
    assert float(part) == pytest.approx(percent / 100)


@pytest.mark.parametrize(
    ("numbers", "words", "mostly"), [(2, 2, False), (3, 2, True), (2, 3, False), (1, 0, True)]
)
def test_half_of_the_attributes_are_not_most(numbers: int, words: int, mostly: bool) -> None:
    assert auto_rules.mostly_numeric(asked(9, numbers=numbers, words=words)) == mostly


@pytest.mark.parametrize(("trees", "few"), [(1024, True), (1025, False)])
def test_rows_rate_the_sums_of_at_most_4096_trees_and_classes(trees: int, few: bool) -> None:
    assert auto_rules.few_sums(replace(asked(9, classes=4), trees=trees)) == few


@pytest.mark.parametrize(
    ("classes", "delta", "signal"),
    [(2, 0, 1_000), (3, 0, 3_000), (2, DELTA, 1_000), (3, DELTA, 1_000)],
)
def test_the_finest_bins_need_ten_times_a_strong_signal(
    classes: int, delta: int, signal: int
) -> None:
    """Without a δ and with several classes, a row changes sums by up to three times as much."""

    def at(times: float) -> Request:
        one = auto_rules.signal(replace(asked(10**6, classes=classes), delta=delta)) / 10**6
        return replace(asked(int(times * signal / one), classes=classes), delta=delta)

    assert auto_rules.signal_is_strong(at(1.01))
    assert not auto_rules.signal_is_strong(at(0.99))
    assert auto_rules.finer_bins_pay(at(10.1))
    assert not auto_rules.finer_bins_pay(at(9.9))


@pytest.mark.parametrize(("delta", "of_strong"), [(0, 1), (DELTA, 0.36)])
def test_the_finest_bins_need_more_rows_if_a_class_is_rare(delta: int, of_strong: float) -> None:
    """With a δ so does a strong signal."""
    one = auto_rules.signal(replace(asked(10**6), delta=delta)) / 10**6

    def at(signal: float) -> Request:
        rows = int(signal / one)
        return replace(asked(rows), histogram=(9 * rows, rows), delta=delta)

    for times, enough in ((1.01, True), (0.99, False)):
        assert auto_rules.finer_bins_pay(at(times * 10_000 / 0.36)) == enough
        assert auto_rules.signal_is_strong(at(times * 1_000 / of_strong)) == enough
