"""Counts in SQL are dense and equal Python's, however they are shared, spared or packed."""

from __future__ import annotations

import re
import tracemalloc
from unittest import mock

import duckdb
import numpy as np
import pytest
from coded_tables import TYPES, coded, coded_as, domain, fill, python_counts
from hypothesis import given
from hypothesis import strategies as st
from steps import encode

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.engine.coded_rows.class_counts import FEW_ROWS
from dpforest_duckdb.engine.coded_rows.same_nodes import SameNodes
from dpforest_duckdb.engine.shared.packing import MAX_BLOCK_COUNTS, MAX_CODES, WORD, blocks
from dpforest_duckdb.engine.shared.siblings import Siblings, spared
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.tree import EQUALS, MULTIWAY, THRESHOLD


def test_counts_are_dense_and_equal_python(con: duckdb.DuckDBPyConnection) -> None:
    made = fill(con)
    rows = coded(con)
    bound = domain().bind(DuckDBEngine(con).table("t").columns)
    counts, expected = rows.count_classes(0, 1), python_counts(made, bound)
    assert [c.shape for c in counts] == [(1, n, 2) for n in bound.cells]
    for got, want in zip(counts, expected, strict=True):
        assert (got == want).all()
    assert (rows.count_leaves(0, 1) == expected[0].sum(axis=1)).all()


@pytest.mark.parametrize("trees", [1, 3])
def test_few_rows_are_counted_as_many_are(con: duckdb.DuckDBPyConnection, trees: int) -> None:
    fill(con)
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain().bind(table.columns)
    first = Splits([0], [1], [THRESHOLD], [0], [trees])
    second = Splits([trees], [0], [MULTIWAY], [0], [trees + 2])
    found, steps = [], []
    for likely_rows in (0, FEW_ROWS, FEW_ROWS + 1):
        rows = encode(engine, table, bound, trees=trees, likely_rows=likely_rows)
        shown: list[str] = []
        rows._stored.statements.trace = shown.append
        counts = rows.count_classes(0, trees) + rows.count_pairs(0, range(bound.cells[0]))
        for splits, nodes in ((first, trees + 2), (second, trees + 2 + bound.cells[0])):
            rows.route(splits, nodes)
            counts += rows.count_classes(nodes - 2, 2)
            counts += rows.count_classes(trees, nodes - trees)
        found.append([table.tolist() for table in counts])
        steps.append(sum('SELECT "key"' in statement for statement in shown))
        rows._stored.statements.trace = None
    assert found[0] == found[1] == found[2]
    assert steps == [0, 6, 0]


def test_copies_of_rows_are_dropped_whatever_stops_the_count(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(con)
    rows = coded(con)
    stored, run = rows._stored, list[str]()

    def tables() -> list[tuple[str]]:
        return stored.cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()

    before = tables()
    stored.statements.trace = run.append
    rows.count_pairs(0, range(stored.domain.cells[0]))
    assert sum("CREATE TEMP TABLE" in statement for statement in run) == 1
    assert tables() == before
    monkeypatch.setattr(stored, "arrays", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        rows.count_pairs(0, range(stored.domain.cells[0]))
    assert tables() == before


def test_keys_of_few_rows_are_whole_numbers(con: duckdb.DuckDBPyConnection) -> None:
    """Also if codes take more than 32 bits: a sum with a UBIGINT would be a HUGEINT, of which
    NumPy makes floating-point numbers.
    """
    names, values = [f"a{number}" for number in range(8)], [f"v{number}" for number in range(40)]
    attributes = [{"name": name, "kind": "categorical", "domain": values} for name in names]
    target = {"name": "k", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "k", "column": [*attributes, target]})
    columns = ", ".join(f"'v3' AS {name}" for name in names)
    con.execute(f"CREATE TABLE t AS SELECT {columns}, 'no' AS k FROM range(5)")
    engine = DuckDBEngine(con)
    table = engine.table("t")
    rows = encode(engine, table, domain.bind(table.columns), likely_rows=5)
    read, found = rows._stored.arrays, []
    rows._stored.arrays = lambda sql, **step: found.append(read(sql, **step)) or dict(found[-1])
    assert [counts[0, 3, 0] for counts in rows.count_classes(0, 1)] == [5] * 8
    assert [groups["key"].dtype for groups in found] == [np.int64]


def test_copies_are_counted_once_until_they_differ(con: duckdb.DuckDBPyConnection) -> None:
    fill(con)
    one, three = coded(con), coded(con, trees=3)
    assert (three.count_leaves(0, 3) == np.repeat(one.count_leaves(0, 1), 3, axis=0)).all()
    for got, want in zip(three.count_classes(0, 3), one.count_classes(0, 1), strict=True):
        assert (got == np.repeat(want, 3, axis=0)).all()
    three.route(Splits([1], [0], [MULTIWAY], [0], [3]), 7)
    assert three.count_leaves(0, 7)[1].sum() == 0, "routed in one copy, and there alone"
    assert three.count_leaves(0, 7).sum() == 3 * one.count_leaves(0, 1).sum()


def test_every_public_cell_is_there_when_no_row_is(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE t ({TYPES})")
    rows = coded(con, trees=3)
    assert all((c == 0).all() and c.shape[0] == 3 for c in rows.count_classes(0, 3))
    assert rows.count_leaves(0, 3).tolist() == [[0, 0]] * 3


def test_spared_children_have_the_counts_that_counting_gives(
    con: duckdb.DuckDBPyConnection,
) -> None:
    fill(con)
    statements: list[str] = []
    rows = coded(con, trees=6)
    rows._stored.statements.trace = statements.append
    roots = rows.count_classes(0, 6)
    assert all((table == table[0]).all() and table[0].sum() > 100 for table in roots)
    first = Splits(
        [0, 1, 2, 3, 4], [1, 1, 3, 0, 1], [THRESHOLD, THRESHOLD, EQUALS, MULTIWAY, THRESHOLD],
        [0, 2, 1, 0, 1], [6, 8, 10, 12, 16],
    )  # fmt: skip
    rows.route(first, 18)
    # tree 5 waits a depth; then it is split with one of the first's children
    second = Splits([6, 5], [2, 1], [THRESHOLD, THRESHOLD], [0, 1], [18, 20])
    for step, nodes in ((None, 18), (second, 22)):
        if step:
            rows.route(step, nodes)
        statements.clear()
        spared = rows.count_classes(0, nodes)
        assert any("wanted" in statement for statement in statements), "some child is spared"
        statements.clear()
        counts = rows._class_counts
        same, counts._same_nodes = counts._same_nodes, SameNodes((), 0)
        counted = rows.count_classes(0, nodes)  # again: nothing was routed, so all is counted
        assert not any("wanted" in statement for statement in statements)
        counts._same_nodes = same
        for one, other in zip(spared, counted, strict=True):
            assert (one == other).all()
        assert (counted[0].sum(axis=(1, 2)) > 0).sum() > nodes / 2
    assert same.pairs(range(22)).tolist() == [[20, 16], [21, 17]], "tree 5 splits as tree 4 did"


def test_many_nodes_of_wide_attributes_take_little_memory() -> None:
    """Marks for all cells of each node would be 200 MB."""
    trees, width = 5, 1000
    same = SameNodes([width] * 40, trees)
    first = [trees + tree * width for tree in range(trees)]
    tracemalloc.start()
    same.follow(Splits([*range(trees)], [0] * trees, [MULTIWAY] * trees, [0] * trees, first))
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    found = same.pairs(range(trees, trees + trees * width))
    assert len(found) == (trees - 1) * width
    assert ((found - trees) % width == (found - trees)[:, 1:]).all()


def test_the_order_of_splits_does_not_matter() -> None:
    """A number is cut at 1 and at 3, in both orders, or one of its cells is taken out."""
    same = SameNodes([6, 2], 3)
    same.follow(Splits([0, 1, 2], [0] * 3, [THRESHOLD, THRESHOLD, EQUALS], [1, 3, 5], [3, 5, 7]))
    same.follow(Splits([4, 5, 8], [0] * 3, [THRESHOLD] * 3, [3, 1, 3], [9, 11, 13]))
    # nodes 3, 6, 7 and 9 to 14: {0,1}, {4,5}, {5}, {2,3}, {4,5}, {0,1}, {2,3}, {0,1,2,3}, {4}
    assert same.pairs(range(15)).tolist() == [[10, 6], [11, 3], [12, 9]]


def test_which_child_is_spared_does_not_rest_on_the_rows() -> None:
    shown = []
    for flipped in (False, True):  # all rows go left, or all go right
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE t ({TYPES})")
            con.execute(f"INSERT INTO t SELECT 'x', {3 * flipped}, 0, 1, true, 'no' FROM range(9)")
            statements: list[str] = []
            rows = coded(con)
            rows.count_classes(0, 1)
            rows.route(Splits([0], [1], [THRESHOLD], [1], [1]), 3)
            rows._stored.statements.trace = statements.append
            counts = rows.count_classes(1, 2)
            assert counts[0].sum(axis=(1, 2)).tolist() == ([0, 9] if flipped else [9, 0])
            shown.append([re.sub("dpforest_[0-9a-f]+", "", statement) for statement in statements])
    assert shown[0] == shown[1]


def test_the_child_that_most_values_lead_to_is_spared() -> None:
    splits = Splits([0, 1, 2, 3], [0, 0, 0, 0], [THRESHOLD, THRESHOLD, EQUALS, MULTIWAY],
                    [0, 2, 0, 0], [4, 6, 8, 10])  # fmt: skip
    found = spared(splits, [4])
    assert found is not None
    assert found.child.tolist() == [5, 6, 9, 10]
    siblings = Siblings([4])
    siblings.fill([np.zeros((4, 4, 2), dtype=np.int64)], 0)
    siblings.follow(splits)
    assert siblings.counted(4, 10).tolist() == [4, 7, 8, 11, 12, 13]
    assert spared(Splits([0], [0], [MULTIWAY], [0], [1]), [5]) is None  # a fifth is too little
    assert spared(Splits([], [], [], [], []), [4]) is None


@given(st.lists(st.integers(2, 300), min_size=1, max_size=12), st.integers(2, 30))
def test_blocks_cover_all_attributes_and_give_their_counts(cells: list[int], classes: int) -> None:
    found = blocks(tuple(cells), classes)
    assert [a for b in found for a in b.attributes] == list(range(len(cells)))
    limit = min(MAX_CODES, MAX_BLOCK_COUNTS // classes)
    assert all(b.size <= limit or len(b.cells) == 1 for b in found)
    random = np.random.default_rng(0)
    rows = np.array([[random.integers(c) for c in cells] for _ in range(30)])
    assert all(block.place.shift + block.place.bits <= WORD for block in found)
    for block in found:
        code = np.zeros(len(rows), dtype=np.int64)
        for a in block.attributes:
            code |= rows[:, a] << (block.place_of(a).shift - block.shift)
        key, many = np.arange(len(rows)) % 3, np.full(len(rows), 2**40 + 1)
        tables = block.marginals(code, key, many, 2, 2)
        for a, table in zip(block.attributes, tables, strict=True):
            for own in range(4):
                counted = np.bincount(rows[key == own, a], minlength=cells[a])
                assert (table[own // 2, :, own % 2] == counted * (2**40 + 1)).all()


def test_products_are_summed_in_several_statements(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 2 AS a, i % 3 AS b, 'yes' AS k FROM range(9) r(i)")
    rows, _ = coded_as(
        con,
        {"name": "a", "kind": "categorical", "domain": [0, 1], "nullable": False},
        {"name": "b", "kind": "categorical", "domain": [0, 1, 2], "nullable": False},
    )
    monkeypatch.setattr("dpforest_duckdb.engine.coded_rows.rows.MAX_SUMS", 2)
    positions = {0: np.array([[1], [10], [0]]), 1: np.array([[1, 2], [0, 5], [7, 3], [0, 0]])}
    placed = np.array([[*positions[0][i % 2], *positions[1][i % 3]] for i in range(9)])
    assert rows.sum_products(positions).tolist() == (placed.T @ placed).tolist()
