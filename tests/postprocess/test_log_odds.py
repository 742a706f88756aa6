"""Sums of log-odds, put right by a histogram of them, and the rows of the classes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from grown_trees import domain

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.postprocess import log_odds as sums_of_log_odds
from dpforest_duckdb.postprocess.class_shares import adjusted
from dpforest_duckdb.postprocess.log_odds import (
    CUTS,
    MIDDLES,
    Evidence,
    evidence,
    fitted_sum,
    minimum_variance_total,
    overlap_weight,
    sums,
)
from dpforest_duckdb.postprocess.noisy_shares import noisy_shares
from dpforest_duckdb.postprocess.share_likelihoods import NoisyTable
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.recipes import find


def test_tables_are_adjusted_to_the_minimum_variance_class_totals() -> None:
    """Totals that all tables count reduce the noise of each, by as much as is claimed."""
    request = find("auto").request(domain(), NANO)
    request = dataclasses.replace(request, trees=6, histogram=(400, 600), rows=1000)
    plan = find("auto").plan(request)
    tables, costs = plan.query("tables"), [q.total for q in plan.queries if q.purpose in ROW_COUNTS]
    assert tables is not None
    assert len(costs) == 2
    scale, random = NANO / tables.by_depth[0], np.random.default_rng(0)
    table = np.array([[100.0, 250.0], [200.0, 250.0], [100.0, 100.0]])
    errors, claimed = [], 0.0
    for _ in range(400):
        noise = [random.laplace(0, NANO / cost, 2) for cost in costs]
        seen = np.array([400, 600]) + np.average(noise, axis=0, weights=np.square(costs))
        tables = [table + random.laplace(0, scale, table.shape) for _ in range(6)]
        known = dataclasses.replace(request, histogram=tuple(seen))
        figures = [(table.sum(axis=0), 3 * 2 * scale**2) for table in tables]
        total, spread = minimum_variance_total(figures, known, plan)
        moved, claimed = adjusted(tables[0], 2 * scale**2, total, spread)
        assert moved.sum(axis=0) == pytest.approx(total)
        errors.append(((moved - table) ** 2).mean())
    assert claimed < 0.75 * 2 * scale**2
    assert np.mean(errors) == pytest.approx(claimed, rel=0.15)


def repeated(times: int) -> Evidence:
    """Copies of one attribute, which make the sum of log-odds overconfident."""
    shares = np.array([[0.8, 0.2], [0.2, 0.8]])
    weight = np.array([0.5, 0.5])
    added = np.log(shares / (weight @ shares))
    return Evidence([added] * times, [shares] * times, [weight] * times, np.array([0.5, 0.5]))


def log_odds(total: object, value: int) -> float:
    return total.start + sum(float(own[value]) for own in total.added)  # type: ignore[attr-defined]


def _information(right: float) -> float:
    """What an attribute says that is right so often, of two equally frequent classes, in bits."""
    return 1 + right * math.log2(right) + (1 - right) * math.log2(1 - right)


@pytest.mark.parametrize("times", [1, 4, 9])
def test_the_weight_falls_with_what_all_but_the_strongest_attribute_say(times: int) -> None:
    """Each attribute is right in .8 of all rows, and the entropy of the classes is one bit."""
    expected = 1 / (1 + (times - 1) * _information(0.8))
    assert overlap_weight(repeated(times)) == pytest.approx(expected)


def test_the_strongest_attribute_does_not_lower_the_weight() -> None:
    half = np.array([0.5, 0.5])
    shares = [np.array([[p, 1 - p], [1 - p, p]]) for p in (0.6, 0.97, 0.5)]
    found = Evidence([np.log(2 * each) for each in shares], shares, [half] * 3, half)
    assert overlap_weight(found) == pytest.approx(1 / (1 + _information(0.6)))


def test_copies_that_say_all_have_the_weight_of_one() -> None:
    half, sure = np.array([0.5, 0.5]), np.eye(2) * (1 - 2e-12) + 1e-12
    found = Evidence([np.log(2 * sure)] * 5, [sure] * 5, [half] * 5, half)
    assert overlap_weight(found) == pytest.approx(1 / 5)


def test_the_weight_is_one_where_nothing_is_said() -> None:
    half = np.array([0.5, 0.5])
    assert overlap_weight(Evidence([], [], [], half)) == 1
    nothing = Evidence([np.zeros((2, 2))] * 3, [np.full((2, 2), 0.5)] * 3, [half] * 3, half)
    assert overlap_weight(nothing) == 1
    one_class = np.array([1.0, 0.0])
    certain = Evidence([np.zeros((2, 2))], [np.tile(one_class, (2, 1))], [half], one_class)
    assert overlap_weight(certain) == 1


def test_a_histogram_of_sums_corrects_for_correlated_attributes() -> None:
    """With the joint histogram, eight copies of one attribute count as one."""
    found, truth = repeated(8), math.log(4)
    plain, strongest = sums(found)
    assert log_odds(plain, 1) > 2 * truth
    joint = np.zeros((len(MIDDLES), len(MIDDLES), 2), dtype=np.int64)
    for value, counts in ((0, (8000, 2000)), (1, (2000, 8000))):
        scores = [log_odds(total.within_cuts(), value) for total in (plain, strongest)]
        place = [int(np.searchsorted(CUTS, score)) for score in scores]
        joint[place[0], place[1]] += counts
    fitted = fitted_sum(found, joint, noise=10.0)
    assert log_odds(fitted, 1) == pytest.approx(truth, abs=0.5)
    assert log_odds(fitted, 0) == pytest.approx(-truth, abs=0.5)


def test_sums_that_do_not_differ_keep_the_shares_of_all_rows() -> None:
    """If no value has information, all rows are in one bin, whose mean is far from its middle."""
    shares, weight = np.tile([0.55, 0.45], (2, 1)), np.array([0.5, 0.5])
    found = Evidence([np.zeros((2, 2))] * 3, [shares] * 3, [weight] * 3, np.array([0.55, 0.45]))
    joint = np.zeros((len(MIDDLES), len(MIDDLES), 2), dtype=np.int64)
    place = int(np.searchsorted(CUTS, math.log(0.45 / 0.55)))
    joint[place, place] = 5500, 4500
    fitted = fitted_sum(found, joint, noise=10.0)
    assert log_odds(fitted, 0) == pytest.approx(math.log(0.45 / 0.55), abs=0.02)


def test_without_rows_in_the_bins_the_plain_sum_stays() -> None:
    found = repeated(3)
    joint = np.zeros((len(MIDDLES), len(MIDDLES), 2), dtype=np.int64)
    plain, strongest = (total.within_cuts() for total in sums(found))
    fitted = fitted_sum(found, joint, noise=1.0)
    assert log_odds(plain, 1) != pytest.approx(log_odds(strongest, 1))
    assert log_odds(fitted, 1) == pytest.approx(log_odds(plain, 1))


def test_the_second_sum_is_the_attribute_that_classifies_most_rows() -> None:
    weak, strong = np.array([[0.6, 0.4], [0.4, 0.6]]), np.array([[0.9, 0.1], [0.1, 0.9]])
    weight, prior = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    shares = [weak, strong, weak]
    added = [np.log(share / (weight @ share)) for share in shares]
    _, alone = sums(Evidence(added, shares, [weight] * 3, prior))
    assert log_odds(alone, 1) == pytest.approx(math.log(9))
    assert [bool(own.any()) for own in alone.added] == [False, True, False]


def test_bins_of_noise_count_less_than_bins_of_rows() -> None:
    found = repeated(3)
    joint = np.zeros((len(MIDDLES), len(MIDDLES), 2), dtype=np.int64)
    expected = log_odds(fitted_sum(found, joint, noise=1.0), 1)
    joint[-1, -1] = 300, 300  # the sums are wrong, if these are rows
    fitted = [log_odds(fitted_sum(found, joint, noise), 1) for noise in (400.0, 100.0, 1.0)]
    assert fitted[0] == pytest.approx(expected)
    assert fitted[0] > fitted[1] > fitted[2]


@pytest.mark.parametrize("counted", [True, False])
def test_classes_are_weighed_by_every_table_that_counts_the_rows_by_itself(counted: bool) -> None:
    """By the inverse of its variance. With `counted` rows, contrasts are no figure of their own."""
    attributes = (
        Attribute("coded", "categorical", ("x", "y"), nullable=False),
        Attribute("many", "categorical", tuple("abcdef"), nullable=False),
    )
    names = {"coded": VARCHAR, "many": VARCHAR, "k": VARCHAR}
    public = Domain(attributes, "k", ("p", "q")).bind(names)
    request = find("auto").request(public, NANO)
    request = dataclasses.replace(request, histogram=(1000, 2000), rows=3000)
    plan = find("auto").plan(request)
    growth = Growth(public.cells, 3, 2)
    rows = (np.array([900, 2100]), 4.0)
    figures = [((1000, 2000), plan.row_noise(1) ** 2), (np.array([1200, 2400]), 6 * 2.0**2)]
    growth.release(np.array([2]), rows[0], rows[1])
    for tree, (each, noise) in enumerate(((700, 3.0), (200, 2.0))):
        values = len(attributes[tree].values)
        leaves = growth.nodes + np.arange(values)
        growth.split_by_cell(np.array([tree]), tree)
        growth.release(leaves, np.tile([each, 2 * each], (values, 1)), noise)
    figures.append((rows[0], rows[1] ** 2) if counted else (np.array([1400, 2800]), 2 * 3.0**2))
    expected = np.average([f for f, _ in figures], axis=0, weights=[1 / v for _, v in figures])
    variance = 1 / sum(1 / of_one for _, of_one in figures)
    found = evidence(growth.finished()[: 3 if counted else 2], request, plan)
    assert found.prior == pytest.approx(noisy_shares(expected, variance), rel=1e-9)


@pytest.mark.parametrize("at_once", [1, 7, 2**11])
def test_rows_of_values_are_those_of_each_table_alone(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """However many tables are estimated together. The rows of a value have the noise of all its
    classes.
    """
    monkeypatch.setattr(sums_of_log_odds, "AT_ONCE", at_once)
    random, tables = np.random.default_rng(0), list[NoisyTable]()
    for number, size in enumerate((3, 2, 3, 3, 2, 3, 3)):
        tables.append(NoisyTable(random.normal(30, 40, (size, 4)), 20.0 + 100 * number, 0))
    found = sums_of_log_odds._rows_of_values(tables)
    for table, rows in zip(tables, found, strict=True):
        alone = noisy_shares(table.counts.sum(axis=1), 4 * table.variance)
        assert rows == pytest.approx(alone, rel=1e-9)


def test_values_weigh_as_many_rows_as_they_have_and_others_nothing() -> None:
    attribute = Attribute("a", "categorical", ("x", "y", "z"))
    public = Domain((attribute,), "k", ("p", "q")).bind({"a": VARCHAR, "k": VARCHAR})
    request = find("log-odds").request(public, NANO)
    request = dataclasses.replace(request, histogram=(600, 400), rows=1000)
    growth, counts = Growth(public.cells, 1, 2), np.array([[350, 250], [100, 50], [50, 0]])
    counts = np.concatenate([counts, np.zeros((public.cells[0] - 3, 2), dtype=np.int64)])
    growth.split_by_cell(np.array([0]), 0)
    growth.release(1 + np.arange(len(counts)), counts, 1.0)
    found = evidence(growth.finished(), request, find("log-odds").plan(request))
    described = list(public.attributes[0].described)
    expected = counts[described].sum(axis=1) / counts.sum()
    assert found.weight[0][described] == pytest.approx(expected, abs=0.01)
    assert found.weight[0].sum() == pytest.approx(1)
