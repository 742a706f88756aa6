"""The pages of published figures: what is kept of a run, and what is said of it."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))

import dpdf_paper
import entropy_bins
import papers
import shared
import thesis_code
from papers import CASES, CHANGES, REASONS, Cell
from shared import Runs
from steps import seeded

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.recipes import find
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import NO_SPLIT, Choice, Drawn
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


def test_the_thesiss_code_splits_by_categories_of_the_node_and_by_an_attribute_once() -> None:
    """The node has categories 0 and 1 of `a`, and one of `b`. The path has split `c`."""
    domain = Domain(
        tuple(Attribute(n, "categorical", ("u", "v", "w")) for n in "abc"), "k", ("x", "y")
    )
    ways = candidates(domain.bind(dict.fromkeys("abck", VARCHAR)), "binary")
    counts = [np.zeros((1, cells, 2), dtype=np.int64) for cells in ways.cells]
    for table, cells in zip(counts, ([0, 1], [2], [0, 1]), strict=True):
        table[0, cells] = 5
    reachable = np.ones((1, sum(ways.cells)), dtype=np.bool_)
    reachable[0, ways.slices[2].start + 2] = False
    seen = []

    def see(choice: Choice) -> Drawn:
        seen.append(ways.attribute[choice.allowed[0]].tolist())
        return Drawn(choice.allowed.argmax(axis=1))

    source = seeded()
    choice = Choice(
        candidates=ways,
        counts=counts,
        allowed=ways.allowed(reachable),
        reachable=reachable,
        noisy=None,
        epsilon=1,
        rows_per_unit=1,
        noise=source.noise,
        bits=source.bits,
    )
    thesis_code.where_both_sides_have_rows(see)(choice)
    thesis_code.once_on_a_path(see)(choice)
    assert seen[0] == [0, 0, 2, 2]
    assert set(seen[1]) == {0, 1}
    nothing = replace(choice, allowed=np.zeros_like(choice.allowed))
    assert thesis_code.where_any(see, nothing).candidate.tolist() == [NO_SPLIT]


def test_bins_by_entropy_end_where_the_classes_no_longer_differ() -> None:
    """20 rows of each value: one class to 4, the other from 5; then half of each everywhere."""
    values = np.arange(10)
    differ = np.where((values < 5)[:, None], [20, 0], [0, 20])
    assert entropy_bins.cuts(values, differ) == [4]
    assert entropy_bins.cuts(values, np.full((10, 2), 10)) == []
    three = np.where((values < 3)[:, None], [20, 0], differ[::-1])
    assert entropy_bins.cuts(values, three) == [2, 4]


def test_every_figure_in_the_text_is_a_cell_and_every_experiment_changes_something() -> None:
    keys = {cell.key for cell in papers.cells()}
    assert set(re.findall(r"\{\{(.+?)\}\}", REASONS)) <= keys
    for case in CASES:
        for epsilon, change in case.experiments:
            form = find(case.recipe, as_published=True)
            assert epsilon in case.published
            changed = CHANGES[change]
            assert changed.pieces(form) or changed.budget(1, 9, 5) != 1 or changed.depth


def test_the_pages_are_written_from_the_runs_that_are_kept() -> None:
    docs = Path(__file__).resolve().parent.parent.parent / "docs"
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
