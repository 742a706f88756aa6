"""Attributes drawn together with their bins: what the windows are, and what a row changes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import encode

from dpforest_duckdb import prepare, train_many
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.connection.temp_space import KEPT_TABLES
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners import candidate_bins, informative_tables
from dpforest_duckdb.learners.candidate_bins import (
    GRID,
    HALVING_HANDICAP,
    HALVINGS,
    LARGEST,
    DrawnBins,
    in_windows,
    own_bins,
)
from dpforest_duckdb.learners.informative_tables import PARTS, draw_in_bins
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.progress import unobserved
from dpforest_duckdb.recipes import find
from dpforest_duckdb.splits.utilities import classified

CLASSES = ("c0", "c1", "c2")
PUBLIC = Domain(
    (
        Attribute("wide", "numeric", lower=-1000, upper=1000),
        Attribute("other", "numeric", lower=0, upper=1, nullable=False),
        Attribute("few", "numeric", lower=0, upper=5, nullable=False),
        Attribute("set", "numeric", lower=0, upper=8, bins=4, nullable=False),
        Attribute("text", "categorical", ("x", "y", "z"), nullable=False),
    ),
    "c",
    CLASSES,
).bind(
    {"wide": DOUBLE, "other": DOUBLE, "few": INTEGER, "set": INTEGER, "text": VARCHAR, "c": VARCHAR}
)
Row = tuple[float, float, int, int, str, str]


def cut(bins: int = 4) -> Domain:
    return replace(PUBLIC, attributes=tuple(a.recut(bins) for a in PUBLIC.attributes))


def some_rows(rows: int, seed: int = 0) -> list[Row]:
    """The class follows "wide", whose values are nearly all within a fiftieth of the bounds."""
    random, found = np.random.default_rng(seed), []
    for _ in range(rows):
        value = float(random.normal(500, 20))
        label = 0 if value < 490 else 1 if value < 510 else 2
        more = float(random.random()), int(random.integers(6)), int(random.integers(9))
        found.append((value, *more, "xyz"[random.integers(3)], CLASSES[label]))
    return found


@pytest.mark.parametrize("bins", [4, 8, 16, 32])
def test_every_option_has_as_many_bins_and_its_cuts_are_on_the_grid(bins: int) -> None:
    domain = cut(bins)
    options = in_windows(domain, PUBLIC).options
    assert [each.count > 1 for each in options] == [True, True, False, False, False]
    for own, public, each in zip(domain.attributes, PUBLIC.attributes, options, strict=True):
        allowed = {*own.edges, *public.recut(GRID).edges}
        assert each.edges[0] == own.edges
        assert each.halvings[0] == 0
        assert len(set(each.edges)) == each.count == len(each.starts) == len(each.halvings)
        for edges in each.edges:
            assert len(edges) == len(own.edges)
            assert set(edges) <= allowed
            assert all(one < other for one, other in pairwise(edges))
        assert set(each.halvings[1:].tolist()) <= set(range(1, HALVINGS + 1))


def test_windows_are_a_half_a_quarter_and_an_eighth_of_the_grid() -> None:
    options = in_windows(cut(), PUBLIC).options[0]
    grid = PUBLIC.attributes[0].recut(GRID)
    inner = {}
    for edges, halvings in zip(options.edges[1:], options.halvings[1:], strict=True):
        places = [grid.edges.index(edge) + 1 for edge in edges]
        inner.setdefault(int(halvings), []).append(max(places) - min(places))
    assert [len(inner[halvings]) for halvings in (1, 2, 3)] == [3, 7, 15]
    for halvings, widths in inner.items():
        assert max(widths) <= grid.proper / 2**halvings + 1


@given(
    seed=st.integers(0, 2**16),
    bins=st.sampled_from([4, 6, 10, 32]),
    rows=st.integers(0, 60),
)
def test_an_option_classifies_as_its_bins_would(seed: int, bins: int, rows: int) -> None:
    """Counts of cells merge into those of bins, also for pairs of attributes."""
    domain, random = cut(bins), np.random.default_rng(seed)
    values = random.choice([-2000, -1000, -3, 0, 0.4, 17, 500, 990, 4000, np.nan], rows)
    labels, first = random.integers(0, 3, rows), random.integers(0, 2, rows)
    options = in_windows(domain, PUBLIC).options[0]
    finer = options.counted
    cells = [finer.code(value) for value in values.tolist()]
    fine = np.zeros((2, finer.cells, 3), dtype=np.int64)
    np.add.at(fine, (first, cells, labels), 1)
    for option, edges in enumerate(options.edges):
        own = replace(domain.attributes[0], edges=edges)
        codes = [own.code(value) for value in values.tolist()]
        assert options.bins(option)[cells].tolist() == codes
        pairs = np.zeros((2, own.cells, 3), dtype=np.int64)
        np.add.at(pairs, (first, codes, labels), 1)
        assert options.classified(fine)[option] == classified(pairs)
        assert options.classified(fine.sum(axis=0))[option] == classified(pairs.sum(axis=0))


def test_options_of_very_many_classes_need_little_memory() -> None:
    """All options together gather several times the table."""
    options = in_windows(cut(16), PUBLIC).options[0]
    counts = np.ones((2, options.counted.cells, 1500), dtype=np.int64)
    tracemalloc.start()
    try:
        found = options.classified(counts)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.tolist() == [2 * options.counted.cells] * options.count
    assert most < 2.5 * counts.nbytes


@pytest.mark.parametrize("at_once", [1, 10**3, 10**9])
def test_options_may_be_gathered_in_blocks(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    options = in_windows(cut(8), PUBLIC).options[0]
    counts = np.random.default_rng(0).integers(0, 9, (2, options.counted.cells, 3))
    expected = [
        sum(classified(np.add.reduceat(table, starts, axis=0)) for table in counts)
        for starts in options.starts
    ]
    monkeypatch.setattr(candidate_bins, "AT_ONCE", at_once)
    assert options.classified(counts).tolist() == expected


@pytest.mark.parametrize("upper", [1e-320, 3e-321, 1e-310])
def test_windows_of_a_grid_of_few_numbers(upper: float) -> None:
    """Of so small numbers there are not enough for all cells of the grid."""
    attribute = Attribute("x", "numeric", lower=0, upper=upper)
    wide = Domain((attribute,), "c", CLASSES).bind({"x": DOUBLE, "c": VARCHAR})
    for bins in (2, 4, 16, 32):
        domain = replace(wide, attributes=(wide.attributes[0].recut(bins),))
        (options,) = in_windows(domain, wide).options
        assert len({len(edges) for edges in options.edges}) == 1
        assert (np.diff(options.starts) > 0).all()


def test_handicaps_are_public_and_fit_into_64_bits() -> None:
    options = in_windows(cut(), PUBLIC).options[0]
    assert options.handicaps(NANO, 3).tolist() == [
        3 * HALVING_HANDICAP * n for n in options.halvings
    ]
    assert options.handicaps(1, 10**12).max() <= LARGEST
    assert own_bins(PUBLIC).options[0].handicaps(1, 10**12).tolist() == [0]


def drawn(
    con: duckdb.DuckDBPyConnection, rows: list[Row], turns: int, k: int = 1, epsilon: int = NANO
) -> list[DrawnBins]:
    """Draws from the windows of `cut()`, on rows of a DuckDB table."""
    con.execute(
        "CREATE OR REPLACE TABLE t (wide DOUBLE, other DOUBLE, few INT, set INT, text VARCHAR, "
        "c VARCHAR)"
    )
    if rows:
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    engine, candidates = DuckDBEngine(con), in_windows(cut(), PUBLIC)
    coded = encode(engine, engine.table("t"), candidates.counted)
    tables = [table[0] for table in coded.count_classes(0, 1)]
    request = find("log-odds").request(cut(), NANO, trees=turns, rows_per_unit=k)
    plan = SimpleNamespace(query=lambda purpose: True, row_noise=lambda k: 0.0)
    account = SimpleNamespace(spend=lambda purpose, turn: epsilon, plan=plan)
    context = SimpleNamespace(
        request=request, accountant=account, randomness=Randomness.secure(), observe=unobserved
    )
    return draw_in_bins(coded, tables, candidates, cast(Any, context))


@pytest.mark.parametrize("k", [1, 3])
def test_rows_of_a_unit_raise_each_utility_by_the_sensitivity_at_most(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    """Of every option of every attribute; handicaps are the same with and without the unit."""
    given: list[tuple[np.ndarray, int]] = []

    def first(utilities: np.ndarray, cost: int, sensitivity: int, bits: object) -> int:
        given.append((utilities, sensitivity))
        return min(3, len(utilities) - 1)  # a window of "wide", then one of "other"

    monkeypatch.setattr(informative_tables, "draw_best", first)
    most = np.zeros(3)
    for seed in range(4):
        rows = some_rows(8 * seed)
        given.clear()
        drawn(con, rows, 3, k)
        drawn(con, rows + some_rows(1, 9 - seed) * k, 3, k)
        for turn, ((before, bound), (after, _)) in enumerate(zip(given, given[3:], strict=False)):
            assert bound == (turn + 1) * k * PARTS
            assert (after >= before).all()
            assert (after - before).max() <= bound
            most[turn] = max(most[turn], (after - before).max() / bound)
    assert (most == 1).all(), "the sensitivity is reached"


def test_the_window_in_which_the_classes_differ_is_drawn(con: duckdb.DuckDBPyConnection) -> None:
    (one,) = drawn(con, some_rows(300), 1, epsilon=100 * NANO)
    candidates = in_windows(cut(), PUBLIC)
    edges = candidates.options[one.number].edges[one.option]
    assert one.number == 0
    assert any(470 < edge < 530 for edge in edges)
    assert candidates.in_bins([one]).attributes[0].edges == edges
    assert candidates.in_bins([one]).attributes[1:] == cut().attributes[1:]


def test_an_attribute_is_drawn_once(con: duckdb.DuckDBPyConnection) -> None:
    for seed in range(3):
        numbers = [one.number for one in drawn(con, some_rows(40, seed), 5)]
        assert sorted(numbers) == [0, 1, 2, 3, 4]


@pytest.mark.more
def test_at_a_tiny_budget_most_attributes_are_drawn_in_their_own_bins(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """The coin of a window shows heads with at most e^-2, that of own bins nearly always."""
    numbers = [drawn(con, some_rows(20), 1, epsilon=1)[0] for _ in range(60)]
    assert sum(one.option == 0 for one in numbers) > 25
    assert len({one.number for one in numbers}) > 3


@pytest.mark.parametrize("classes", [2, 3])
def test_three_classes_or_more_are_drawn_with_their_bins(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], classes: int
) -> None:
    """All rows are in a thirtieth of the bounds, so few bins over all of them say nothing."""
    con.execute(
        "CREATE TABLE t AS SELECT 500.0 + (i % 300) / 10.0 AS wide, "
        "hash(i) % 100 / 100.0 AS other, hash(i + 7000) % 100 / 100.0 AS more, "
        f"'c' || (i % 300 * {classes} // 300) AS c FROM range(900) AS r(i)"
    )
    attributes = (
        Attribute("wide", "numeric", lower=0, upper=1000, nullable=False),
        Attribute("other", "numeric", lower=0, upper=1, nullable=False),
        Attribute("more", "numeric", lower=0, upper=1, nullable=False),
    )
    domain = Domain(attributes, "c", tuple(f"c{label}" for label in range(classes)))
    forest = fit(con, "t", domain=domain, recipe="log-odds", epsilon="0.4", trees=1)
    edges = forest.domain.attributes[0].edges
    assert (sum(490 < edge < 540 for edge in edges) >= 2) == (classes == 3)
    assert [purpose.split(":")[0] for purpose in forest.guarantee.plan][-2:] == [
        "attribute",
        "tables",
    ]


def test_runs_that_draw_other_bins_keep_few_coded_tables(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coded, most, encode_once, drop_once = set[int](), [0], StoredRows.encoded, StoredRows.drop

    def encode_and_count(*given: Any) -> StoredRows:
        rows = encode_once(*given)
        coded.add(id(rows))
        most[0] = max(most[0], len(coded))
        return rows

    def drop_and_count(rows: StoredRows) -> None:
        drop_once(rows)
        coded.discard(id(rows))

    monkeypatch.setattr(StoredRows, "encoded", staticmethod(encode_and_count))
    monkeypatch.setattr(StoredRows, "drop", drop_and_count)
    con.execute(
        "CREATE TABLE t AS SELECT hash(i) % 1000 / 1.0 AS a, hash(i + 7000) % 1000 / 1.0 AS b, "
        "hash(i + 14000) % 1000 / 1.0 AS d, 'c' || i % 3 AS c FROM range(400) AS r(i)"
    )
    attributes = tuple(
        Attribute(name, "numeric", lower=0, upper=1000, nullable=False) for name in "abd"
    )
    domain = Domain(attributes, "c", CLASSES)
    runs = [
        prepare(
            con,
            "t",
            domain=domain,
            recipe="log-odds",
            epsilon="0.2",
            trees=1,
            privacy_unit="row",
            name=f"m{number}",
            ledger=tmp_path / "ledger",
        )
        for number in range(12)
    ]
    assert len(list(train_many(runs))) == 12
    assert KEPT_TABLES <= most[0] <= KEPT_TABLES + 1
