"""The benchmark of other people's models on other tables: whom it asks, and what the page says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))
import unseen_peers
from in_memory import Table
from shared import Results
from unseen import KEYS, Grid
from unseen_peers import WITH, compared, peer_runs, sections

ROWS = 900
GRID = Grid((600,), (0.1, 1.0), 0.0, range(2), ("auto",))


def table(name: str) -> Table:
    """A table of a number and as many classes as its name says."""
    classes = tuple(f"c{number}" for number in range(int(name)))
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE rows AS SELECT i::DOUBLE AS x, 'c' || i % {name} AS k "
        f"FROM range({ROWS}) AS r(i)"
    )
    domain = Domain((Attribute("x", "numeric", lower=0, upper=ROWS),), "k", classes)
    return Table(con, "rows", domain.bind({"x": DOUBLE, "k": VARCHAR}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """The pairs of each call of a peer: how many, and their training and test rows."""
    calls = []

    def figures_of(
        peer: str, table: Table, pairs: Sequence[Any], place: Path, epsilons: Any, delta: float
    ) -> list[list[dict[str, float]]]:
        training, test = pairs[0]
        assert not set(training) & set(test)
        calls.append((len(pairs), len(training), len(test)))
        figures = [{"accuracy": e / 2, "auc": 0.5, "log_loss": 1.0} for e in epsilons]
        return [figures for _ in pairs]

    monkeypatch.setattr(unseen_peers, "figures_of", figures_of)
    monkeypatch.setattr(unseen_peers, "table_of", table)
    return calls


def test_a_peer_is_asked_once_for_all_seeds_and_its_runs_are_kept(
    asked: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    file = tmp_path / "kept.jsonl"
    made = list(peer_runs(["2", "3"], Results(file, KEYS), GRID, "diffprivlib"))
    assert asked == [(2, 600, 300)] * 2
    assert [(run["table"], run["epsilon"], run["seed"]) for run in made[:4]] == [
        ("2", 0.1, 0), ("2", 1.0, 0), ("2", 0.1, 1), ("2", 1.0, 1)
    ]  # fmt: skip
    assert list(peer_runs(["2", "3"], Results(file, KEYS), GRID, "diffprivlib")) == made
    assert len(asked) == 2


def test_dp_ebm_is_asked_for_two_classes_only(asked: list[tuple[int, int, int]]) -> None:
    assert len(list(peer_runs(["2", "3"], Results(None, KEYS), GRID, "DP-EBM"))) == 4
    assert len(asked) == 1


def run(table: str, seed: int, epsilon: float, delta: float, accuracy: float) -> dict[str, Any]:
    """A run on 600 rows."""
    keys = dict(zip(KEYS, (table, 600, "auto", epsilon, delta, seed), strict=True))
    return {**keys, "accuracy": accuracy, "auc": None, "log_loss": 1.0}


def test_the_page_counts_where_the_default_is_ahead_and_lists_where_it_is_behind() -> None:
    peer = [run(name, seed, 1.0, 1e-5, 0.5) for name in "abc" for seed in (0, 1)]
    ours = [
        run(name, seed, 1.0, 0.0, accuracy + 0.001 * seed)
        for name, accuracy in (("a", 0.9), ("b", 0.4), ("c", 0.505))
        for seed in (0, 1)
    ]
    assert set(compared(peer, ours)) == {(name, 600, 1.0) for name in "abc"}
    page = sections({"auto": ours, WITH: []}, {"DP-EBM": peer})
    line = next(row for row in page.splitlines() if "auto, DP-EBM, 1 " in row)
    assert [cell.strip() for cell in line.split("|")[-3:-1]] == ["3", "1 / 1"]
    listed = [row.split("|")[1].strip() for row in page.splitlines() if "-0.0" in row]
    assert listed == ["b"]
