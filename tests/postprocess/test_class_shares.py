"""Class shares from noisy counts: posterior means, which noise alone does not move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest_duckdb.postprocess import class_shares as shares_module
from dpforest_duckdb.postprocess.class_shares import class_shares, shares_around
from dpforest_duckdb.postprocess.share_likelihoods import NoisyTable, Values, likelihoods_of

PRIOR = np.array([0.7, 0.3])


STEP = np.repeat([0.2, 0.8], 8)


SLOPE = 1 / (1 + np.exp(-np.linspace(-3, 3, 24)))


def shares_of(
    table: np.ndarray, prior: np.ndarray, variance: float, ordered: int = 0
) -> np.ndarray:
    """The class shares of a single table."""
    (shares,) = class_shares([NoisyTable(table, variance, ordered)], prior)
    return shares


def test_large_counts_keep_their_shares_and_noise_gives_those_of_all_rows() -> None:
    table = np.array([[9000.0, 1000.0], [2000.0, 8000.0], [5000.0, 5000.0]])
    clear = shares_of(table, PRIOR, variance=2.0)
    assert clear == pytest.approx(table / table.sum(axis=1, keepdims=True), abs=0.01)
    unclear = shares_of(table, PRIOR, variance=1e12)
    assert unclear == pytest.approx(np.tile(PRIOR, (3, 1)), abs=0.05)
    assert np.ptp(unclear, axis=0) == pytest.approx(0, abs=1e-3), "no value differs"


@pytest.mark.parametrize("counts", [[-10.0, -149.0], [-149.0, -10.0], [-60.0, -60.0], [0.0, 0.0]])
def test_a_value_with_counts_below_zero_has_the_shares_of_all_rows(counts: list[float]) -> None:
    """A count below zero is noise, of whichever class it is."""
    table = np.array([counts, [400.0, 600.0], [600.0, 400.0]])
    shares = shares_of(table, np.array([0.5, 0.5]), variance=50.0**2)
    assert shares[0] == pytest.approx([0.5, 0.5], abs=0.02)


def test_values_without_rows_have_the_shares_of_all_rows() -> None:
    """Not shares that tend to be equal, because each cell of noise alone favours these a little."""
    random, prior, found = np.random.default_rng(0), np.array([0.95, 0.05]), []
    for _ in range(30):
        counts = np.outer(np.repeat([1000.0, 0.0], [10, 10]), prior)
        rows = np.vstack([counts, [0.0, 0.0]])  # the last value has no order, as NULL has none
        noisy = rows + random.laplace(0, 6, rows.shape)
        found.append(shares_of(noisy, prior, 2 * 6.0**2, ordered=20)[:, 1])
    near, far, unordered = (np.mean(found, axis=0)[part] for part in (slice(10), slice(10, 20), 20))
    assert near == pytest.approx(0.05, abs=0.01)
    assert far.max() < 0.07, "0.13 if empty values were taken to have rows"
    assert unordered < 0.07, "0.09 if NULL might differ more than all other values do"


@pytest.mark.parametrize(
    ("share", "rows", "scale", "most"), [(STEP, 50, 15.0, 0.75), (SLOPE, 200, 12.0, 0.85)]
)
def test_ordered_values_borrow_from_their_neighbours(
    share: np.ndarray, rows: int, scale: float, most: float
) -> None:
    """Noise hides single bins, but neither a step between two levels nor a slope."""
    random, errors = np.random.default_rng(0), {True: 0.0, False: 0.0}
    for _ in range(20):
        counts = np.stack([rows * (1 - share), rows * share], axis=1)
        noisy = counts + random.laplace(0, scale, counts.shape)
        for ordered in errors:
            in_order = len(share) if ordered else 0
            found = shares_of(noisy, np.array([0.5, 0.5]), 2 * scale**2, in_order)
            errors[ordered] += float(np.abs(found[:, 1] - share).mean())
    assert errors[True] < most * errors[False]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_shares_are_shares_whatever_the_noise(data: st.DataObject) -> None:
    values, classes = data.draw(st.integers(1, 12)), data.draw(st.integers(2, 5))
    counts = st.lists(st.integers(-(10**6), 10**6), min_size=classes, max_size=classes)
    table = np.array([data.draw(counts) for _ in range(values)], dtype=np.float64)
    prior = np.full(classes, 1 / classes)
    ordered = data.draw(st.integers(0, values))
    found = shares_of(table, prior, data.draw(st.floats(0.1, 1e12)), ordered)
    assert found.shape == table.shape
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert found.sum(axis=1) == pytest.approx(1)


def test_shares_are_estimated_in_groups_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of tables and blocks of classes bound the memory, and change no share."""
    random = np.random.default_rng(0)
    tables = [
        NoisyTable(random.poisson(mean, (values, 5)).astype(np.float64), 9.0 + values, ordered)
        for values, mean, ordered in ((7, 20, 4), (2, 90, 0), (5, 2, 5))
    ]
    prior = np.arange(1, 6) / 15

    def found() -> list[np.ndarray]:
        priors = [np.tile(prior, (len(table.counts), 1)) for table in tables]
        return class_shares(tables, prior) + shares_around(tables, priors)

    together = found()
    monkeypatch.setattr(shares_module, "AT_ONCE", 1)
    shares_module._class_shares.cache_clear()
    for whole, by_block in zip(together, found(), strict=True):
        np.testing.assert_allclose(by_block, whole, rtol=1e-11)


@pytest.mark.parametrize("values", [20, 100, 1000])
@pytest.mark.parametrize("rows", [0.0, 1.5])
def test_noise_alone_is_not_taken_for_rows(values: int, rows: float) -> None:
    """A cell of noise is best explained by rows of one class, but hardly any value has so many."""
    random, prior = np.random.default_rng(3), np.array([0.5, 0.5])
    noisy = random.poisson(rows / 2, (values, 2)) + random.laplace(0, 5.0, (values, 2))
    share = shares_of(noisy, prior, 2 * 5.0**2)[:, 1]
    assert np.log(share / (1 - share)).std() < 0.25, "1 if any number of rows were as likely"


@pytest.mark.parametrize("rows", [50, 500, 50_000])
def test_a_few_values_may_hold_nearly_all_rows(rows: int) -> None:
    """They are far above the mean of all values, and still no noise."""
    random, prior = np.random.default_rng(0), np.array([0.5, 0.5])
    scale = rows / 25
    noisy = random.laplace(0, scale, (1000, 2))
    noisy[:2] += [[0.85 * rows, 0.15 * rows], [0.15 * rows, 0.85 * rows]]
    noisy += (rows - noisy.sum(axis=0)) / 1000
    found = shares_of(noisy, prior, 2 * scale**2)[:2, 1]
    assert found == pytest.approx([0.15, 0.85], abs=0.1)


@pytest.mark.parametrize("classes", [2, 4])
def test_likelihoods_of_shares_are_those_of_values_with_rows_and_without(classes: int) -> None:
    """The number of rows of a value is integrated out here, point by point."""
    random, variance = np.random.default_rng(classes), 30.0
    counts = random.normal([[0.0], [15.0], [50.0], [-20.0]], 6, (4, classes))
    values = Values.of([NoisyTable(counts, variance)])
    known, rest, shares = values.rows, classes - 1, np.array([0.02, 0.3, 0.9])
    grid = np.broadcast_to(shares, (classes, 1, 3))
    found = likelihoods_of(values, slice(0, classes), grid)
    rows = np.linspace(0, 1000, 100_001)
    for label, value, place in np.ndindex(classes, 4, 3):
        p, own = shares[place], counts[value, label]
        others, mean = counts[value].sum() - own, known.means[value]
        exact = p**2 + (1 - p) ** 2 / rest
        seen = (p * own + (1 - p) * others / rest) / exact
        normal = np.exp(-((seen - rows) ** 2) * exact / variance / 2)
        spread = variance * rest * exact + max(counts[value].sum(), 1) * p * (1 - p)
        having = (1 - known.empty[value]) * np.exp(known.worth[value])
        density = np.exp(-rows / mean) / mean * normal
        having *= (density.sum() - (density[0] + density[-1]) / 2) * rows[1]  # trapezoidal rule
        having *= np.sqrt(exact / variance / 2 / np.pi) / np.sqrt(spread)
        having *= np.exp(-(((1 - p) * own - p * others) ** 2) / spread / 2)
        without = np.exp(-(own**2 + others**2 / rest) / variance / 2)
        without *= known.empty[value] / variance / np.sqrt(2 * np.pi * rest)
        log = found.log()[label, value, place]
        assert log == pytest.approx(np.log(having + without), abs=1e-4), (label, value, place)
    apart = np.log(found.relative()) - found.log()
    assert apart == pytest.approx(np.broadcast_to(apart[..., :1], apart.shape), abs=1e-6)
