"""Curves of ordered values: evidence and shares agree with sums over a fine grid."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from variants import some

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.postprocess.class_shares import (
    OFFSETS,
    WIDTHS,
    _averaged,
    _share,
    class_shares,
)
from dpforest_duckdb.postprocess.curves import (
    DEGREES,
    WIDTH,
    curves,
    fitting_degrees,
    polynomials,
)
from dpforest_duckdb.postprocess.newton_steps import STEP_WIDTHS, StepWidths, steps
from dpforest_duckdb.postprocess.share_likelihoods import NoisyTable, Values, likelihoods_of


def likelihoods(counts: Floats, variance: float) -> tuple[Floats, Floats]:
    """The log-likelihood `[1, value, offset]` and the share `[1, offset]` of the second class."""
    grid = _share(OFFSETS)[None]
    values = Values.of([NoisyTable(counts, variance)])
    return likelihoods_of(values, slice(1, 2), grid[:, None]).log(), grid


def by_fine_grid(likelihood: Floats, degree: int) -> tuple[float, Floats]:
    """The evidence and the mean shares, by a sum over many coefficients."""
    ends = np.linspace(-3, 3, 121)
    coefficients = np.array(list(itertools.product(ends, repeat=degree + 1)))
    offsets = coefficients @ polynomials(likelihood.shape[1], degree).T
    places = np.clip(offsets, OFFSETS[0], OFFSETS[-1])
    height = -(coefficients**2).sum(axis=1) / (2 * WIDTH**2)
    for value, curve in enumerate(likelihood[0]):
        height = height + np.interp(places[:, value], OFFSETS, curve)
    mass = np.exp(height - height.max())
    cell = ((ends[1] - ends[0]) / (WIDTH * np.sqrt(2 * np.pi))) ** (degree + 1)
    return float(height.max() + np.log(mass.sum() * cell)), mass / mass.sum() @ _share(places)


@some("degree", [1, 2], keep=1)
@pytest.mark.parametrize(
    "rows",
    [
        300,
        pytest.param(100, marks=pytest.mark.slow),
        pytest.param(np.geomspace(2_000, 60, 9), marks=pytest.mark.slow),
    ],
)
def test_evidence_and_shares_are_those_of_a_fine_grid(degree: int, rows: float | Floats) -> None:
    share = _share(np.linspace(-1.0, 2.0, 9))
    noise = np.random.default_rng(0).laplace(0, 6, (9, 2))
    counts = np.stack([rows * (1 - share), rows * share], axis=1) + noise
    likelihood, grid = likelihoods(counts, 72.0)
    evidence, means = curves(likelihood, OFFSETS, grid)
    expected, shares = by_fine_grid(likelihood, degree)
    assert evidence[0, degree - 1] == pytest.approx(expected, abs=0.1)
    assert means[0, :, degree - 1] == pytest.approx(shares, abs=0.01)


@pytest.mark.parametrize("degree", DEGREES)
def test_a_curve_of_the_right_degree_has_the_most_evidence(degree: int) -> None:
    """Lower degrees cannot follow it, and higher ones have coefficients to spare."""
    values = 24
    share = _share(1.5 * polynomials(values, degree)[:, degree])
    counts = 4_000 * np.stack([1 - share, share], axis=1)
    likelihood, grid = likelihoods(counts, 2.0)
    evidence, means = curves(likelihood, OFFSETS, grid)
    assert DEGREES[int(evidence[0].argmax())] == degree
    assert means[0, :, DEGREES.index(degree)] == pytest.approx(share, abs=0.02)


def test_a_slope_that_noise_hides_in_single_values_is_found() -> None:
    """Without their order, values stay near the shares of all rows."""
    share, random = _share(np.linspace(-2.0, 2.0, 32)), np.random.default_rng(1)
    errors = {0: 0.0, 32: 0.0}
    for _ in range(10):
        counts = 60 * np.stack([1 - share, share], axis=1) + random.laplace(0, 15, (32, 2))
        for ordered in errors:
            table = NoisyTable(counts, 450.0, ordered)
            (found,) = class_shares([table], np.array([0.5, 0.5]))
            errors[ordered] += float(np.abs(found[:, 1] - share).mean()) / 10
    assert errors[32] < 0.5 * errors[0]


@pytest.mark.parametrize("values", range(6))
def test_a_curve_has_fewer_coefficients_than_values(values: int) -> None:
    assert fitting_degrees(values) == [degree for degree in (1, 2, 3, 4) if degree + 2 <= values]


def test_counts_of_a_very_large_epsilon_divide_nothing_by_zero() -> None:
    """Counts that jump, so that no curve follows them, under almost no noise."""
    counts = np.tile([1.1e12, 1.4e11, -7.6e11], (33, 1))
    for label, values in enumerate(([11, 23], [9, 21, 30], [26, 28, 29, 32])):
        counts[values, label] = 3.3e13
    for variance in (3.4e13, 1e-6):
        with warnings.catch_warnings(action="error"):
            table = NoisyTable(counts, variance, ordered=33)
            (shares,) = class_shares([table], np.full(3, 1 / 3))
        assert np.isfinite(shares).all()
        assert (shares.argmax(axis=1)[[11, 21, 32]] == [0, 1, 2]).all()


def test_before_counts_are_seen_a_curve_is_as_likely_as_all_models_without_curves() -> None:
    """Values by themselves, one cut and two cuts: three kinds, which are equally likely."""
    values, curves_ = 5, 2
    no_share, likelihood = np.zeros((1, len(OFFSETS))), np.zeros((1, values, len(OFFSETS)))
    alone = (np.zeros((1, values, len(WIDTHS))),) * 2
    along = np.zeros((1, curves_)), np.ones((1, values, curves_))
    mean = _averaged(no_share, likelihood, *alone, *along)
    assert mean == pytest.approx(curves_ / (1 + curves_)), "the part that curves have"


def test_the_likeliest_curve_is_flat_if_counts_say_nothing() -> None:
    """Then the prior alone decides: the coefficients are 0, and each of them as wide as WIDTH."""
    likelihood, grid = np.zeros((1, 9, len(OFFSETS))), _share(OFFSETS)[None]
    evidence, means = curves(likelihood, OFFSETS, grid)
    np.testing.assert_allclose(evidence, 0, atol=1e-9)
    np.testing.assert_allclose(means, 0.5, atol=1e-9)
    likelihood = np.tile(-((OFFSETS - 1.0) ** 2) / 8, (1, 9, 1))  # as if each value had shown 1
    _, means = curves(likelihood, OFFSETS, grid)
    level = 9 / (9 + 4 / WIDTH**2)  # the posterior mean of a level that nine values have shown
    assert means[0, 4, 0] == pytest.approx(_share(np.array([level]))[0], abs=0.03)


def test_classes_together_have_the_curves_of_each_alone() -> None:
    """Also where counts below zero leave the likelihood almost flat."""
    random = np.random.default_rng(3)
    for scale in (1e3, 1e7):
        counts = -scale * random.random((11, 5))
        grid = np.tile(_share(OFFSETS), (5, 1))
        values = Values.of([NoisyTable(counts, 1.0)])
        likelihood = likelihoods_of(values, slice(0, 5), grid[:, None]).log()
        together = curves(likelihood, OFFSETS, grid)
        for label in range(5):
            alone = curves(likelihood[[label]], OFFSETS, grid[[label]])
            for part, whole in zip(alone, together, strict=True):
                np.testing.assert_allclose(part[0], whole[label], rtol=1e-9)


def dense(
    gradients: Floats, hessians: Floats, variance: float, ordered: int
) -> tuple[Floats, Floats, Floats]:
    """Steps, their deviation and the evidence `[width]`, by matrices of all values."""
    spread, found = np.diag(variance + hessians), []
    for degree in (None, *DEGREES):
        kernel = np.eye(len(gradients))
        if degree is not None:
            place = np.linspace(-1, 1, ordered)
            terms = [np.polynomial.Legendre.basis(term)(place) for term in range(degree + 1)]
            kernel[:ordered, :ordered] = sum(np.outer(term, term) for term in terms)
            kernel[:ordered, :ordered] /= np.trace(kernel[:ordered, :ordered]) / ordered
        for width in STEP_WIDTHS:
            prior = width**2 * kernel
            covariance = np.diag(hessians) @ prior @ np.diag(hessians) + spread
            inverse = np.linalg.inv(covariance)
            worth = -gradients @ inverse @ gradients / 2 - np.linalg.slogdet(covariance)[1] / 2
            found.append((worth, prior @ np.diag(hessians) @ inverse))
    worths = np.array([worth for worth, _ in found])
    weights = np.exp(worths - worths.max())
    slope = np.tensordot(weights / weights.sum(), np.array([part for _, part in found]), 1)
    by_width = np.logaddexp.reduce(worths.reshape(-1, len(STEP_WIDTHS)), axis=0)
    return slope @ gradients, np.sqrt(variance * (slope**2).sum(axis=1)), by_width


@pytest.mark.parametrize("noise", [4.0, 400.0])
def test_steps_are_those_of_gaussian_models(noise: float) -> None:
    """Ten values on a curve and two without an order: steps, deviations, and what is learnt."""
    random = np.random.default_rng(5)
    hessians = random.uniform(20, 200, 12)
    truth = np.concatenate([0.3 * np.linspace(-1, 1, 10), [0.8, -0.8]])
    gradients = hessians * truth + random.normal(0, np.sqrt(noise), 12)
    widths, expected = StepWidths(), StepWidths()
    found, deviation = steps(gradients, hessians, noise, 10, largest=50.0, widths=widths)
    wanted, spread, evidence = dense(gradients, hessians, noise, 10)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(deviation, spread, atol=1e-9)
    expected.learn(evidence)
    np.testing.assert_allclose(widths.weights, expected.weights, atol=1e-9)


@pytest.mark.parametrize("hessian", [1e9, 1e14, 1e18])
@pytest.mark.parametrize("noise", [1e-9, 1e6])
def test_steps_of_huge_sums_are_those_of_plain_division(hessian: float, noise: float) -> None:
    """As many rows tell each step exactly, on a curve or not, and little noise is left in it."""
    wanted = np.concatenate([0.5 * np.linspace(-1, 1, 40), [1.0]])
    gradients, hessians = hessian * wanted, np.full(41, hessian)
    found, deviation = steps(gradients, hessians, noise, 40, largest=2, widths=StepWidths())
    np.testing.assert_allclose(found, wanted, atol=1e-7)
    assert (deviation <= np.sqrt(noise) / hessian * (1 + 1e-6)).all()
    assert (deviation > 0).all()


@pytest.mark.parametrize(("values", "used"), [(2, 2), (250, 250), (251, 251), (252, 0)])
def test_the_order_of_many_values_is_not_used(values: int, used: int) -> None:
    categories = tuple(map(str, range(values)))
    assert Attribute("a", "categorical", categories, ordered=True).used_in_order == used
    assert Attribute("a", "categorical", categories).used_in_order == 0
