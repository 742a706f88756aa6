"""Shares of all rows from noisy counts: posterior means, whatever the noise and the classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.postprocess.noisy_shares import SHAPES, counted_shares, noisy_shares
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import find


@pytest.mark.parametrize(
    ("counts", "deviation"),
    [((400.0, 90.0, 10.0), 60.0), ((-40.0, 55.0, 30.0), 50.0), ((700.0, -900.0, 20.0), 40.0)],
)
def test_shares_are_posterior_means(counts: tuple[float, ...], deviation: float) -> None:
    seen, draws = np.array(counts), 400_000
    mean = max(seen.sum(), deviation * len(seen) ** 0.5, 1.0) / len(seen)
    random = np.random.default_rng(0)
    evidence, expected = [], []
    for shape in SHAPES:
        rows = random.gamma(shape, mean / shape, (draws, 1))
        fit = np.exp(-(((rows - seen) / deviation) ** 2) / 2)
        evidence.append(np.prod(fit.mean(axis=0)))
        expected.append((fit * rows).mean(axis=0) / fit.mean(axis=0))
    rows_of_class = np.array(evidence) @ np.array(expected)
    expected_shares = rows_of_class / rows_of_class.sum()
    assert noisy_shares(seen, deviation**2) == pytest.approx(expected_shares, rel=0.03, abs=0.003)


def test_without_noise_shares_are_those_of_the_counts() -> None:
    counts = np.array([9_000_000.0, 999_990.0, 10.0])
    assert noisy_shares(counts, 1e-6) == pytest.approx(counts / counts.sum(), rel=1e-3)


def test_counts_that_differ_by_noise_alone_give_about_equal_shares() -> None:
    counts = np.random.default_rng(1).normal(15, 50, 26)
    assert np.ptp(noisy_shares(counts, 50.0**2)) < 0.5 / 26


def test_a_class_of_nearly_all_rows_keeps_them_in_large_noise() -> None:
    shares = noisy_shares(np.array([359.0, 30.0, -50.0, 60.0, -20.0]), 50.0**2)
    assert shares[0] > 0.7  # to add the noise to each class, as rows, would give .56


def test_negative_counts_give_positive_shares() -> None:
    shares = noisy_shares(np.array([-500.0, -90.0, 0.0]), 30.0**2)
    assert (shares > 0).all()
    assert shares.sum() == pytest.approx(1)


def test_the_unit_and_the_order_do_not_matter() -> None:
    counts = np.array([300.0, -20.0, 80.0, 35.0])
    shares = noisy_shares(counts, 40.0**2)
    assert noisy_shares(10 * counts, 400.0**2) == pytest.approx(shares)
    assert noisy_shares(counts[::-1], 40.0**2)[::-1] == pytest.approx(shares)


def test_tables_are_estimated_alike_together_and_alone() -> None:
    counts = np.array([[300.0, -20.0, 80.0], [5.0, 900.0, 12.0]])
    variance = np.array([40.0, 7.0]) ** 2
    together = noisy_shares(counts, variance)
    for shares, table, of_one in zip(together, counts, variance, strict=True):
        assert shares == pytest.approx(noisy_shares(table, float(of_one)))


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_counted_shares_have_the_noise_of_the_counts(rows_per_unit: int) -> None:
    attribute = Attribute("a", "categorical", ("x", "y"), nullable=False)
    recipe, domain = find("log-odds"), Domain((attribute,), "y", ("p", "q", "r"))
    request = replace(recipe.request(domain, NANO // 10), rows_per_unit=rows_per_unit)
    assert counted_shares(request, recipe.plan(request)) == pytest.approx([1 / 3] * 3)
    seen = replace(request, histogram=(900, 60, -40), rows=920)
    plan = recipe.plan(seen)
    expected = noisy_shares(np.array([900.0, 60.0, -40.0]), plan.row_noise(rows_per_unit) ** 2)
    assert counted_shares(seen, plan) == pytest.approx(expected)
