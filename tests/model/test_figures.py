"""The figures of a model from counts, exact and with noise."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_tables import CLASSES, scored_table

from dpforest_duckdb.engine.base import Outcomes
from dpforest_duckdb.model.figures import (
    EDGES,
    HALF,
    LEAST_PROBABILITY,
    Evaluation,
    auc,
    exact_figures,
    log_loss,
    noisy_figures,
    possible,
)
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import SeededBits
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.training.evaluate import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")


def rows_of(con: duckdb.DuckDBPyConnection, forest: Forest) -> list[tuple[str, str, list[float]]]:
    """Label, prediction and shares of every row that has a class."""
    return [
        (row[2], row[3], list(row[4:]))
        for row in forest.predict(con, "t").fetchall()
        if row[2] is not None
    ]


@pytest.mark.parametrize("classes", [2, 3])
def test_exact_figures_are_those_of_the_definitions(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path, classes: int
) -> None:
    scored_table(con, classes)
    forest = fit(con, "t", target="label", privacy_unit="row", seed=5)
    found = evaluate(con, forest, "t", ledger=tmp_path / "ledger")
    rows = rows_of(con, forest)
    names = CLASSES[classes]
    own = [max(shares[names.index(label)], LEAST_PROBABILITY) for label, _, shares in rows]
    assert found.rows == len(rows) == 901
    assert found.unlabelled == 2, "rows without a class are left out, and counted"
    assert found.accuracy == pytest.approx(np.mean([label == said for label, said, _ in rows]))
    assert found.log_loss == pytest.approx(-np.mean(np.log(own)))
    assert not found.private
    assert "epsilon" not in found.facts()
    of_class = Counter(label for label, _, _ in rows)
    assert found.most_frequent == pytest.approx(max(of_class.values()) / 901)
    if classes == 2:
        scores = {n: [shares[1] for label, _, shares in rows if label == n] for n in names}
        won = [(y > n) + (y == n) / 2 for y in scores["yes"] for n in scores["no"]]
        assert found.auc == pytest.approx(np.mean(won))
        pairs = Counter((label, said) for label, said, _ in rows)
        assert found.confusion == tuple(tuple(pairs[a, b] for b in names) for a in names)
        assert min(map(min, found.confusion)) > 0, "both kinds of error are seen"
    else:
        assert found.auc is None
        assert found.confusion == ()
        assert "confusion" not in found.facts()
        right = Counter(label for label, said, _ in rows if label == said)
        assert found.by_class == tuple((of_class[name], right[name]) for name in names)
        assert min(right.values()) > 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_auc_is_the_share_of_pairs_in_order(groups: list[tuple[int, int, int]]) -> None:
    score, up, down = (np.array(column) for column in zip(*groups, strict=True))
    pairs = [
        up[i] * down[j] * ((score[i] > score[j]) + (score[i] == score[j]) / 2)
        for i, j in itertools.product(range(len(groups)), repeat=2)
    ]
    found = auc(score / 5, up, down)
    if up.sum() and down.sum():
        assert found == pytest.approx(sum(pairs) / (up.sum() * down.sum()))
    else:
        assert found is None


def test_log_loss_of_a_probability_of_zero_is_finite() -> None:
    expected = -math.log(LEAST_PROBABILITY) / 2
    assert log_loss(np.array([0.0, 1.0]), np.array([1, 1])) == pytest.approx(expected)
    assert str(log_loss(np.array([1.0]), np.array([3]))) == "0.0"


def test_exact_figures_do_not_depend_on_the_order_of_the_rows() -> None:
    random = np.random.default_rng(1)
    label, right, rows = (random.integers(0, most, 400) for most in (2, 2, 50))
    value = random.uniform(0, 1, 400)
    expected = exact_figures(Outcomes(label, right, value, rows), 2)
    for _ in range(20):
        new = random.permutation(400)
        moved = Outcomes(label[new], right[new], value[new], rows[new])
        assert exact_figures(moved, 2) == expected


def test_no_row_gives_no_figure() -> None:
    nothing = np.zeros(0, np.int64)
    for classes, counts in (
        (2, {"confusion": [[0, 0]] * 2, "bins": [[0, 0]] * 22, "bin_edges": list(EDGES)}),
        (3, {"by_class": [[0, 0]] * 3}),
    ):
        found = exact_figures(Outcomes(nothing, nothing, nothing.astype(float), nothing), classes)
        assert found.facts() == {
            "rows": 0,
            "accuracy": None,
            "log_loss": None,
            "auc": None,
            "private": False,
            "most_frequent": None,
            "unlabelled": 0,
            **counts,
        }


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8), st.data())
def test_every_row_has_a_cell_in_the_public_grid(votes: list[int], data: st.DataObject) -> None:
    """No row can be in a cell that the grid leaves out."""
    if not sum(votes):
        votes[0] = 1
    shares = [vote / sum(votes) for vote in votes]
    label = data.draw(st.integers(0, len(votes) - 1))
    right = int(votes.index(max(votes)) == label)  # the first of equals is predicted
    value = shares[1] if len(votes) == 2 else shares[label]
    bin_ = sum(value > edge for edge in EDGES)
    assert possible(len(votes))[label if len(votes) == 2 else 0, right, bin_]


@pytest.mark.parametrize("classes", range(3, 60))
def test_a_class_may_be_predicted_with_an_equal_share(classes: int) -> None:
    """1 / classes can be an edge itself: 0.2 with five classes, 0.05 with twenty."""
    bin_ = sum(1 / classes > edge for edge in EDGES)
    predicted = possible(classes)[0, 1]
    assert predicted[bin_:].all()
    assert not predicted[:bin_].any(), "the first of equals has the least share of a predicted one"


@pytest.mark.parametrize("classes", [2, 3])
def test_noisy_figures_with_much_epsilon_are_the_exact_ones(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path, classes: int
) -> None:
    scored_table(con, classes)
    forest = fit(con, "t", target="label")
    ledger = tmp_path / "ledger"
    exact = evaluate(con, forest, "t", ledger=ledger)
    con.execute("CREATE TABLE u AS FROM t")
    noisy = evaluate(con, forest, "u", epsilon=10_000, unseen=True, ledger=ledger)
    assert (noisy.rows, noisy.accuracy) == (exact.rows, pytest.approx(exact.accuracy))
    assert noisy.log_loss == pytest.approx(exact.log_loss, abs=0.1)
    assert noisy.auc is None if classes == 3 else noisy.auc == pytest.approx(exact.auc, abs=0.05)
    assert noisy.confusion == exact.confusion
    assert noisy.private
    facts = noisy.facts()
    assert (facts["epsilon"], facts["privacy_unit"], facts["rows_per_unit"]) == (10_000, "row", 1)
    assert facts["noise"] == pytest.approx(0)
    by_unit = evaluate(
        con,
        forest,
        "t",
        epsilon=10_000,
        privacy_unit="who",
        rows_per_unit=2,
        ledger=ledger,
    )
    assert by_unit.unit == PrivacyUnit("who", 2)
    assert by_unit.rows == 600, "two of three rows of each, and none of nobody's"


def test_noise_makes_no_number_of_rows_negative() -> None:
    empty = np.zeros((2, 2, len(EDGES) + 1), np.int64)
    noisy = [
        noisy_figures(empty, NANO // 10, ROW, 2, ExactNoise(SeededBits(seed))) for seed in range(20)
    ]
    cells = [rows for found in noisy for pair in found.confusion for rows in pair]
    assert min(cells) == 0 < max(cells)


def test_noise_is_as_wide_as_epsilon_and_unit_say() -> None:
    """The variance of the number of rows is that of the discrete Laplace, once per cell."""
    grid = np.where(possible(2), 10_000, 0)
    for epsilon, k in ((1, 1), (1, 4), (0.25, 1)):
        nano = int(epsilon * NANO)
        rows = [
            noisy_figures(grid, nano, PrivacyUnit("who", k), 2, ExactNoise(SeededBits(seed))).rows
            for seed in range(300)
        ]
        decay = math.exp(-epsilon / k)
        expected = 2 * decay / (1 - decay) ** 2 * possible(2).sum()
        assert 0.7 < np.var(rows) / expected < 1.4
        assert abs(np.mean(rows) - grid.sum()) < 5 * math.sqrt(expected / 300)


@pytest.mark.parametrize(("classes", "share"), [(2, 0.9), (2, 0.5), (4, 0.7)])
def test_the_noise_of_figures_is_about_their_standard_deviation(classes: int, share: float) -> None:
    cells = possible(classes)
    right = np.array([1 - share, share])[None, :, None] / cells.sum(axis=(0, 2))[None, :, None]
    grid = np.rint(5_000 * right * cells).astype(np.int64)
    found = [
        noisy_figures(grid, NANO, ROW, classes, ExactNoise(SeededBits(seed))) for seed in range(400)
    ]
    for name in ("rows", "accuracy", "log_loss", *(["auc"] if classes == 2 else [])):
        figures = [getattr(each, name) for each in found]
        stated = [getattr(each, f"{name}_noise") for each in found]
        assert np.std(figures) == pytest.approx(np.mean(stated), rel=0.15), name


def test_noise_alone_stays_within_what_figures_can_be() -> None:
    empty = np.zeros(possible(2).shape, np.int64)
    for seed in range(50):
        found = noisy_figures(empty, NANO // 10, ROW, 2, ExactNoise(SeededBits(seed)))
        assert not found.private, "the noise came from a seed"
        assert found.rows is not None
        assert found.rows >= 0
        for figure in (found.accuracy, found.auc):
            assert figure is None or 0 <= figure <= 1
        assert found.log_loss is None or 0 <= found.log_loss < 7


def test_noisy_figures_rank_a_rare_class_too() -> None:
    """Probabilities of a class of 2 % lie in several bins, so that AUC says something."""
    random = np.random.default_rng(5)
    value = 1 / (1 + np.exp(4 - 1.2 * random.standard_normal(40_000)))
    label = (random.random(len(value)) < value).astype(int)
    exact = auc(value, label, 1 - label)
    grid = np.zeros(possible(2).shape, np.int64)
    places = (label, (label == (value > 0.5)).astype(int), np.searchsorted(EDGES, value))
    np.add.at(grid, places, 1)
    noisy = noisy_figures(grid, 100 * NANO, ROW, 2, ExactNoise(SeededBits(1)))
    assert exact is not None
    assert exact > 0.75
    assert noisy.auc == pytest.approx(exact, abs=0.012)
    assert noisy.most_frequent == pytest.approx(1 - label.mean(), abs=1e-3)


def test_bins_are_cut_alike_on_both_sides_of_a_half() -> None:
    assert list(EDGES) == sorted(EDGES)
    assert [round(1 - edge, 6) for edge in reversed(EDGES)] == list(EDGES)
    assert EDGES[HALF - 1] == 0.5


def test_figures_that_say_nothing_say_why() -> None:
    plain = Evaluation(rows=10, accuracy=0.9, log_loss=0.1, auc=0.9)
    assert not plain.doubt
    assert not replace(plain, epsilon=1, accuracy_noise=0.09).doubt
    noisy = replace(plain, epsilon=1, accuracy_noise=0.11, bins=((5, 0), (0, 5)))
    assert noisy.doubt.startswith("These figures are mostly noise")
    assert noisy.most_frequent == 0.5
    empty = replace(noisy, rows=0)
    assert empty.doubt.startswith("By the noisy counts, perhaps no row")
    assert empty.most_frequent is None
    assert replace(plain, rows=0).doubt.startswith("No row has a class")


class OneRowLess(ExactNoise):
    """Noise of -1 in one cell alone."""

    def laplace(self, values: Any, epsilon: int, sensitivity: int) -> Any:
        noisy = values.copy()
        noisy[0, 1, 0] -= 1
        return noisy


def test_noise_that_leaves_no_row_leaves_no_figures() -> None:
    grid = np.zeros((2, 2, len(EDGES) + 1), dtype=np.int64)
    for rows in (0, 1):
        grid[0, 1, 0] = rows  # of which noise leaves -1 and 0
        found = noisy_figures(grid, NANO, ROW, 2, OneRowLess(SeededBits(1)))
        assert (found.rows, found.accuracy, found.log_loss, found.auc) == (0, None, None, None)
