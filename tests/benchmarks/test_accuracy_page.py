"""The pages that benchmarks write: losses first, means over tables, and errors of constants."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))

import accuracy_page
import constants
from accuracy_page import CEILING, Cell


@pytest.fixture(autouse=True)
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of tables with targets beside it: iris should reach .9 at ε = 1."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "nursery.parquet").touch()
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "accuracy.csv").write_text(
        "table,epsilon,target_accuracy,target_auc\niris,1.0,0.9,\nmade,1.0,0.7,0.8\n"
    )
    monkeypatch.setenv("DPFOREST_DATA", str(tmp_path / "data"))


def cell(table: str, contender: str, accuracy: float, auc: float | None = None) -> Cell:
    return Cell(table, contender, 1.0, accuracy, 0.01, auc, 0.5, majority=0.6, entropy=0.45)


def test_the_page_lists_the_table_that_is_furthest_behind_first() -> None:
    cells = [
        cell("made", "auto", 0.72, 0.79),
        cell("made", "boosted", 0.65, 0.7),
        cell("iris", "auto", 0.8),
        cell("iris", CEILING, 0.97),
    ]
    text, charts = accuracy_page.page(cells, 0.0, 3, "the command", "accuracy", "")
    rows = [line for line in text.splitlines() if line.startswith(("| iris ", "| made "))]
    assert [row.split("|")[1].strip() for row in rows] == ["iris", "made"]
    assert [word.strip() for word in rows[0].split("|")][4:6] == ["-0.100", "0.900, hindsight"]
    assert "+0.020" in rows[1]
    assert "within .01 of the best seen in accuracy 1 of 2 rows, in AUC 1 of 1" in text
    assert "log loss above that of the class shares by more than .01: 2" in text
    assert {chart.title for chart in charts} >= {"iris: accuracy", "made: AUC"}


def test_the_way_to_a_forest_without_privacy_is_shown_by_rows_and_epsilon() -> None:
    """From .6, the most frequent class, to 1: .7 is a quarter of the way, .9 three quarters."""
    cells = [
        replace(cell("iris", "auto", 0.7), rows=200),
        replace(cell("made", "auto", 0.9), rows=200),
        replace(cell("nursery", "auto", 0.8), rows=5_000),
        replace(cell("boxes", "auto", 0.6), rows=200),
    ]
    cells += [cell(name, CEILING, 1.0) for name in ("iris", "made", "nursery", "boxes")]
    rows = [line.split("|") for line in accuracy_page.ways(cells).splitlines() if "%" in line]
    assert [[word.strip() for word in row[1:-1]] for row in rows[1:]] == [
        ["up to 300", "2", "38%", "50%"],
        ["above 3,000", "1", "50%", "50%"],
    ]


def test_an_aim_for_a_table_is_met_or_missed_plainly() -> None:
    cells = [cell("nursery", "auto", 0.925), cell("krkopt", "auto", 0.4)]
    cells.append(cell("german_credit", "auto", 0.7, 0.66))
    text = accuracy_page.set_aims(cells, 0.0)
    rows = [[word.strip() for word in line.split("|")] for line in text.splitlines()]
    met = {row[1]: row[6] for row in rows if len(row) > 6}
    assert met["nursery"] == met["german_credit"] == "yes"
    assert met["krkopt"] == "no, 0.0200 short"
    assert accuracy_page.set_aims(cells, 1e-5) == ""


def test_a_mean_over_runs_leaves_out_figures_that_are_not_known() -> None:
    runs = [{"accuracy": a, "auc": None, "log_loss": 1.0} for a in (0.5, 0.7)]
    found = Cell.mean("t", "auto", 0.5, runs, np.array([0.25, 0.75]))
    assert found.accuracy == pytest.approx(0.6)
    assert found.error == pytest.approx(0.1)
    assert found.auc is None
    assert found.majority == 0.75


@pytest.mark.parametrize(
    ("means", "best"), [([0.5, 0.6, 0.5], 2.0), ([0.5, 0.6, 0.7], 4.0), ([0.7, 0.5, 0.6], 1.0)]
)
def test_the_best_value_of_a_constant_is_inside_what_was_tried(
    means: list[float], best: float
) -> None:
    assert constants.best_value(means, [1.0, 2.0, 4.0]) == pytest.approx(best)


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=(30, 1))
    best, error = constants.jackknife(values, lambda means: float(means[0]))
    assert best == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(30))


def test_a_constant_is_put_back_after_it_was_tried() -> None:
    for constant in constants.CONSTANTS:
        kept = constant.value
        with constants.Setting(constant, constant.larger).used():
            assert constant.value == constant.larger
        assert constant.value == kept


@pytest.mark.parametrize("benchmark", ["accuracy", "constants", "peer_accuracy"])
def test_the_help_needs_no_tables(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPFOREST_DATA", str(tmp_path / "absent"))
    monkeypatch.setattr(sys, "argv", [f"{benchmark}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(benchmark).main()
    assert ended.value.code == 0
