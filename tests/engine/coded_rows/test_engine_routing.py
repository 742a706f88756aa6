"""Rows get to the node that Python sends them to, and trees share them or weigh them."""

from __future__ import annotations

from collections import Counter

import duckdb
import numpy as np
import pytest
from coded_tables import TYPES, coded, domain, fill, parts, python_codes
from steps import encode
from variants import some

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.base import Coding, Sample, Splits
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.tree import EQUALS, MULTIWAY, THRESHOLD, Tree, branch_of


@pytest.mark.parametrize("word", [63, 8])  # bits of a column of codes
@some(("entries", "joins"), [(1024, 32), (0, 32), (0, 2)], keep=2)
def test_routing_agrees_with_branches(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    word: int,
    entries: int,
    joins: int,
) -> None:
    monkeypatch.setattr("dpforest_duckdb.engine.shared.packing.WORD", word)
    monkeypatch.setattr("dpforest_duckdb.engine.coded_rows.routing.MAX_LIST", entries)
    monkeypatch.setattr(
        "dpforest_duckdb.engine.coded_rows.stored_rows.MAX_JOINS", joins
    )  # trees of one statement
    made = fill(con)
    bound = domain().bind(DuckDBEngine(con).table("t").columns)
    codes, labels = python_codes(made, bound)
    rows = coded(con, trees=3)
    # three trees, each with another kind of split at its root
    splits = Splits([0, 1, 2], [0, 1, 3], [MULTIWAY, THRESHOLD, EQUALS], [0, 1, 2], [3, 7, 9])
    rows.route(splits, 11)
    counts = rows.count_leaves(3, 8)
    expected = np.zeros((8, 2), dtype=np.int64)
    for a, kind, cell, first in ((0, MULTIWAY, 0, 0), (1, THRESHOLD, 1, 4), (3, EQUALS, 2, 6)):
        branch = branch_of(np.array(kind), np.array(cell), codes[:, a])
        np.add.at(expected, (first + branch, labels), 1)
    assert (counts == expected).all()
    # a second depth: only some nodes are split, the rows of the others stay where they are
    rows.route(Splits([7], [2], [MULTIWAY], [0], [11]), 15)
    assert rows.count_leaves(0, 15)[7].sum() == 0
    assert rows.count_leaves(11, 4).sum() == expected[4].sum()
    assert (rows.count_leaves(0, 15)[8] == expected[5]).all()


def labelling(kind: list[int], attribute: list[int], cell: list[int], first: list[int]) -> Tree:
    """A tree whose node n votes for class n % 2."""
    votes = np.eye(2, dtype=np.int64)[np.arange(len(kind)) % 2]
    return Tree(*map(np.array, (kind, attribute, cell, first)), None, votes)


@pytest.mark.parametrize("disjoint", [False, True])
def test_trees_label_rows_as_python_does(con: duckdb.DuckDBPyConnection, disjoint: bool) -> None:
    """Trees of depth 2, 1 and 0, after the rows were routed elsewhere, each row in one or both."""
    made = fill(con)
    bound = domain().bind(DuckDBEngine(con).table("t").columns)
    codes, classes = python_codes(made, bound)
    wide = bound.cells[0]
    leaf = [0] * (wide - 1)
    trees = [
        labelling(
            [MULTIWAY, THRESHOLD, *leaf, 0, 0],
            [0, 1, *[-1] * (wide + 1)],
            [0, 1, *leaf, 0, 0],
            [1, wide + 1, *[-1] * (wide + 1)],
        ),
        labelling([EQUALS, 0, 0], [3, -1, -1], [2, 0, 0], [1, -1, -1]),
        labelling([0], [-1], [0], [-1]),
    ]
    rows = coded(con, trees=2, disjoint=disjoint)
    nodes = 2 + bound.cells[2]
    rows.route(Splits([0], [2], [MULTIWAY], [0], [2]), nodes)
    before = rows.count_leaves(0, nodes)
    labels, truth, counted = rows.count_labels(trees)
    found = Counter()
    for key, number in zip(np.column_stack([labels, truth]).tolist(), counted, strict=True):
        found[tuple(key)] += int(number)
    given = [tree.votes.argmax(axis=1)[tree.find(codes)] for tree in trees]
    assert found == Counter(zip(*(g.tolist() for g in (*given, classes)), strict=True))
    assert (rows.count_leaves(0, nodes) == before).all(), "the rows stay where they were"


def test_disjoint_trees_share_the_rows_out(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT 'x' AS a, i AS b, 1.0 AS c, 1 AS d, true AS e, 'no' AS k "
        "FROM range(4000) r(i)"
    )
    sizes = parts(coded(con, trees=4, disjoint=True), 4)
    assert sum(sizes) == 4000
    assert all(850 < size < 1150 for size in sizes)
    assert sizes != parts(coded(con, trees=4, disjoint=True, salt=2), 4)


def test_one_more_row_moves_no_other(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, 400)
    before = coded(con, trees=5, disjoint=True).count_leaves(0, 5)
    con.execute("CREATE TABLE u AS SELECT * FROM t ORDER BY hash(b, c, d)")
    con.execute("DROP TABLE t")
    con.execute("ALTER TABLE u RENAME TO t")
    con.execute("INSERT INTO t VALUES ('x', 1, 1.0, 1, true, 'no')")
    change = coded(con, trees=5, disjoint=True).count_leaves(0, 5) - before
    assert change.sum() == 1
    assert (change >= 0).all()


def test_equal_rows_share_a_tree(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT 'x' AS a, 1 AS b, 1.0 AS c, 1 AS d, true AS e, 'no' AS k "
        "FROM range(50)"
    )
    assert sorted(parts(coded(con, trees=8, disjoint=True), 8)) == [0] * 7 + [50]


def constant(label: int) -> Tree:
    """A tree that gives every row one class."""
    one = np.zeros(1, dtype=np.int64)
    return Tree(one, one - 1, one, one - 1, None, np.eye(2, dtype=np.int64)[[label]])


def split_on(attribute: int, cell: int) -> Tree:
    """A tree that gives class 0 where the code of an attribute is `cell`, else class 1."""
    leaf = np.zeros(3, dtype=np.int64)
    first = np.array([1, -1, -1])
    votes = np.array([[0, 0], [1, 0], [0, 1]])
    at = np.array([attribute, -1, -1])
    return Tree(np.array([EQUALS, 0, 0]), at, np.array([cell, 0, 0]) + leaf, first, None, votes)


def judged(
    con: duckdb.DuckDBPyConnection,
    unit: PrivacyUnit,
    sample: Sample,
    *first_phase: Tree,
    trees: int = 2,
) -> list[np.ndarray]:
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain().without(unit.columns).bind(table.columns)
    rows = encode(
        engine,
        table,
        bound,
        unit,
        trees=trees,
        sample=sample,
        first_phase=first_phase,
        misclassified_weight=3,
    )
    return rows.count_classes(0, trees)


def test_rows_that_half_of_the_first_phase_trees_get_wrong_count_more_often(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """Class 0 ("no") is wrong by one tree of two, class 1 by both, or neither."""
    fill(con)
    plain = judged(con, ROW, "all")
    both = judged(con, ROW, "all", constant(0), constant(0))
    third = judged(con, ROW, "all", constant(0), constant(0), split_on(4, 1))
    for before, after, more in zip(plain, both, third, strict=True):
        assert (after[:, :, 0] == before[:, :, 0]).all()
        assert (after[:, :, 1] == 3 * before[:, :, 1]).all()
        assert (more == after).all()
    half = judged(con, ROW, "all", constant(0), constant(1))
    assert all((after == 3 * before).all() for before, after in zip(plain, half, strict=True))


def test_a_unit_weighs_no_more_than_its_rows_times_the_weight(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """With and without one unit: counts differ by at most 2 rows, three times each."""
    con.execute(f"CREATE TABLE t ({TYPES}, u INTEGER)")
    con.execute(
        "INSERT INTO t SELECT 'x', i % 3, i % 2, 1, true, ['no', 'yes'][i % 2 + 1], i // 5 "
        "FROM range(200) r(i)"
    )
    unit = PrivacyUnit("u", 2)
    whole = judged(con, unit, "all", constant(0))
    con.execute("DELETE FROM t WHERE u = 7")
    less = judged(con, unit, "all", constant(0))
    moved = [abs(a - b).sum(axis=(1, 2)).max() for a, b in zip(whole, less, strict=True)]
    assert max(moved) in range(2, 2 * 3 + 1)


def test_a_bootstrap_draws_what_the_first_phase_trees_get_wrong(
    con: duckdb.DuckDBPyConnection,
) -> None:
    rows = fill(con)
    kept = sum(row[-1] in ("no", "yes") for row in rows)
    drawn = judged(con, ROW, "bootstrap", constant(0), constant(0))[0]
    assert drawn[:, :, 0].sum() == 0
    assert (drawn.sum(axis=(1, 2)) == kept).all()
    con.execute("UPDATE t SET k = CASE WHEN e THEN 'no' ELSE 'yes' END")
    right = judged(con, ROW, "bootstrap", split_on(4, 0))[0]
    assert (right.sum(axis=(1, 2)) == len(rows)).all(), "no tree is wrong, so all rows are alike"
    assert (right.sum(axis=(0, 1)) > 0).all()


def test_the_root_of_the_eighty_sixth_tree_keeps_rows_of_all_classes(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """Its number times three classes is the largest of a type, and a label is added to it."""
    con.execute(
        "CREATE TABLE t AS SELECT i % 4 AS a, ['n', 'm', 'y'][1 + i % 3] AS k "
        "FROM range(30) AS r(i)"
    )
    columns = [
        {"name": "a", "kind": "categorical", "domain": [0, 1, 2, 3], "nullable": False},
        {"name": "k", "kind": "categorical", "domain": ["n", "m", "y"]},
    ]
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain_from_mapping({"target": "k", "column": columns}).bind(table.columns)
    with engine.snapshot(table, shared=True) as rows:
        rows.encode(Coding(bound, ROW, trees=1, sample="all", salt=1))
        coded = rows.encode(Coding(bound, ROW, trees=90, sample="all", salt=1))
        split = [root for root in range(90) if root != 85]
        kinds, ones = [EQUALS] * len(split), [1] * len(split)
        first = list(range(90, 90 + 2 * len(split), 2))
        nodes = 90 + 2 * len(split)
        coded.route(Splits(split, [0] * len(split), kinds, ones, first), nodes)
        assert coded.count_leaves(0, nodes)[85].tolist() == [10, 10, 10]
