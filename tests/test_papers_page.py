"""The pages of published figures: what is kept of a run, and what is said of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import dpdf_paper
import papers
import shared
import thesis_code
from papers import CASES, CHANGES, REASONS, Cell
from shared import Runs

from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.recipes import find
from dpforest_duckdb.tree import LEAF, THRESHOLD


def test_runs_are_kept_one_by_one_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    runs = Runs.read("made")
    for figure in (0.25, 0.5):
        runs.add("a/cell", figure)
    runs.add("another", 1 / 3)
    again = Runs.read("made")
    assert again.of("a/cell") == [0.25, 0.5]
    assert again.of("another") == [0.333333]
    assert again.of("none") == []


def test_a_stopped_command_runs_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    cell, seeds = Cell(CASES[0], "1", "rigorous"), []
    monkeypatch.setattr(Cell, "run", lambda self, seed, ledgers: seeds.append(seed) or 0.5)
    runs = Runs.read("papers")
    runs.add(cell.key, 0.7)
    papers.fill([cell], runs, 3)
    assert seeds == [1, 2]
    assert runs.of(cell.key) == [0.7, 0.5, 0.5]


@pytest.mark.parametrize(
    ("found", "said"),
    [([0.8, 0.8], "met"), ([0.7, 0.74], "missed"), ([0.9, 0.91], "exceeded"), ([0.8], "-")],
)
def test_a_figure_is_met_within_two_standard_errors(found: list[float], said: str) -> None:
    assert papers.verdict(0.8, found) == said
    assert papers.verdict(None, found) == "-"


def test_a_figure_of_few_runs_is_marked(tmp_path: Path) -> None:
    found = {"one": [0.5], "few": [0.5, 0.7], "all": [0.5] * papers.RUNS}
    runs = Runs(tmp_path / "none.json", found)
    assert papers.mean(runs, "one") == "0.500 (1 run)"
    assert papers.mean(runs, "few") == "0.600 ± 0.100 (2 runs)"
    assert papers.mean(runs, "all") == "0.500 ± 0.000"
    assert papers.mean(runs, "none") == "not run"


def test_the_thesiss_code_splits_no_more_once_a_path_has_all_its_splits() -> None:
    """A complete tree of two splits a path: root 0, then 1 and 2, then 3, 4 below 1 and 5, 6."""
    growth = Growth((2, 2), trees=1, classes=2)
    for nodes in ([0], [1, 2]):
        count = np.full(len(nodes), THRESHOLD)
        growth.split(np.array(nodes), np.zeros_like(count), count, np.zeros_like(count))
    assert np.flatnonzero(~thesis_code.ended(growth, 2)).tolist() == [0, 1], "node 2 comes later"
    growth.kind[1] = LEAF  # of one class: no path has two splits before node 2
    assert np.flatnonzero(~thesis_code.ended(growth, 2)).tolist() == [0, 2]


def test_every_figure_in_the_text_is_a_cell_and_every_experiment_changes_something() -> None:
    keys = {cell.key for cell in papers.cells()}
    assert set(re.findall(r"\{\{(.+?)\}\}", REASONS)) <= keys
    for case in CASES:
        for epsilon, change in case.experiments:
            form = find(case.recipe, as_published=True)
            assert epsilon in case.published
            assert CHANGES[change].pieces(form) or CHANGES[change].budget(1, 9, 5) != 1


def test_the_pages_are_written_from_the_runs_that_are_kept() -> None:
    docs = Path(__file__).resolve().parent.parent / "docs"
    page = papers.page(Runs.read("papers"), REASONS)
    assert page == (docs / "reproduction.md").read_text("utf-8"), (
        "write it again: python benchmarks/papers.py --page-only --markdown docs/reproduction.md"
    )


def test_the_baseline_is_kept_once_for_all_numbers_of_trees(tmp_path: Path) -> None:
    bench = dpdf_paper.Bench("car", None, None, tmp_path)  # type: ignore[arg-type]
    one, four = bench.keys(1), bench.keys(4)
    shared_keys = set(one) & set(four)
    assert {form for form, _ in map(one.get, shared_keys)} == {dpdf_paper.BASELINE}  # type: ignore[misc]
    assert len(one) == len(four) == 15
