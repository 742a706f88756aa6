"""Counting in SQL: codes, dense counts, routing, units and trees."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import encode
from variants import some

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping, load_domain
from dpforest_duckdb.engine.base import Coding, Gradients, Sample, Splits
from dpforest_duckdb.engine.class_counts import FEW_ROWS
from dpforest_duckdb.engine.connect import MEMORY, open_database
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.engine.packing import MAX_BLOCK_COUNTS, MAX_CODES, WORD, blocks
from dpforest_duckdb.engine.rows import DuckDBRows
from dpforest_duckdb.engine.same_nodes import SameNodes
from dpforest_duckdb.engine.siblings import Siblings, spared
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners.growth import one_split
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.codes import MAX_LOOKED_UP
from dpforest_duckdb.tree import EQUALS, MULTIWAY, THRESHOLD, Tree, branch_of

COLUMNS = [
    {"name": "a", "kind": "categorical", "domain": ["x", "y"], "nullable": True},
    {"name": "b", "kind": "numeric", "lower": 0, "upper": 3, "nullable": True},
    {"name": "c", "kind": "numeric", "edges": [0.5, 1.5], "nullable": False},
    {"name": "d", "kind": "categorical", "domain": [1, 2, 3], "nullable": False},
    {"name": "e", "kind": "categorical", "domain": [True, False], "nullable": False},
    {"name": "k", "kind": "categorical", "domain": ["no", "yes"]},
]
TYPES = "a VARCHAR, b INTEGER, c DOUBLE, d INTEGER, e BOOLEAN, k VARCHAR"


def domain() -> Domain:
    return domain_from_mapping({"target": "k", "column": COLUMNS})


def coded(
    con: duckdb.DuckDBPyConnection,
    unit: PrivacyUnit = PrivacyUnit("row"),  # noqa: B008
    *,
    trees: int = 1,
    disjoint: bool = False,
    salt: int = 1,
) -> DuckDBRows:
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain().without(unit.column).bind(table.columns)
    return encode(
        engine, table, bound, unit, trees=trees, sample="disjoint" if disjoint else "all", salt=salt
    )


def fill(con: duckdb.DuckDBPyConnection, rows: int = 500, seed: int = 0) -> list[tuple]:
    random = np.random.default_rng(seed)
    pools: list[list] = [
        ["x", "y", "zzz", "", None],
        [-(2**31), -1, 0, 1, 2, 3, 9, 2**31 - 1, None],
        [float("-inf"), -0.0, 0.5, 0.6, 1.5, 7.0, float("inf"), float("nan"), None],
        [1, 2, 3, 4, None],
        [True, False, None],
        ["no", "yes", "maybe", None],
    ]
    made = [tuple(p[int(random.integers(len(p)))] for p in pools) for _ in range(rows)]
    con.execute(f"CREATE TABLE t ({TYPES})")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", made)
    return made


def python_counts(rows: Sequence[tuple], bound: Domain) -> list[np.ndarray]:
    """What the SQL must count, from Python's own coding of the rows."""
    kept = [row for row in rows if row[-1] in bound.classes]
    found = []
    for number, attribute in enumerate(bound.attributes):
        table = np.zeros((1, attribute.cells, len(bound.classes)), dtype=np.int64)
        for row in kept:
            table[0, attribute.code(row[number]), bound.classes.index(row[-1])] += 1
        found.append(table)
    return found


def test_counts_are_dense_and_equal_python(con: duckdb.DuckDBPyConnection) -> None:
    made = fill(con)
    rows = coded(con)
    bound = domain().bind(DuckDBEngine(con).table("t").columns)
    counts, expected = rows.count_classes(0, 1), python_counts(made, bound)
    assert [c.shape for c in counts] == [(1, n, 2) for n in bound.cells]
    for got, want in zip(counts, expected, strict=True):
        assert (got == want).all()
    assert (rows.count_leaves(0, 1) == expected[0].sum(axis=1)).all()


@pytest.mark.parametrize("collation", ["COLLATE NOCASE", ""])
def test_text_is_coded_byte_by_byte_whatever_its_collation(
    con: duckdb.DuckDBPyConnection, collation: str
) -> None:
    """Of the column, or of all columns by a setting."""
    fill(con)
    con.execute("UPDATE t SET a = upper(a) WHERE e")
    con.execute("UPDATE t SET k = upper(k) WHERE d = 1")
    if not collation:
        con.execute("SET GLOBAL default_collation = 'NOCASE'")
    con.execute(f"CREATE TABLE u ({TYPES.replace('VARCHAR', f'VARCHAR {collation}')})")
    con.execute("INSERT INTO u FROM t")
    con.execute("DROP TABLE t")
    con.execute("ALTER TABLE u RENAME TO t")
    assert con.execute("SELECT count(*) FROM t WHERE k = 'no' AND k <> 'NO'").fetchone() == (0,)
    bound = domain().bind(DuckDBEngine(con).table("t").columns)
    expected = python_counts(con.execute("FROM t").fetchall(), bound)
    for got, want in zip(coded(con).count_classes(0, 1), expected, strict=True):
        assert (got == want).all()


def test_runs_that_share_codes_see_a_change_of_case(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE t ({TYPES.replace('VARCHAR', 'VARCHAR COLLATE NOCASE')})")
    con.execute("INSERT INTO t VALUES ('x', 1, 1.0, 1, true, 'no')")
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain().bind(table.columns)
    coding = Coding(bound, PrivacyUnit("row"), trees=1, sample="all", salt=1)
    with engine.snapshot(table, shared=True) as rows:
        first = rows.encode(coding, last=True).count_classes(0, 1)[0]
        con.execute("UPDATE t SET a = 'X'")
        second = rows.encode(coding, last=True).count_classes(0, 1)[0]
    assert first[0, :, 0].tolist() == [1, 0, 0, 0]
    assert second[0, :, 0].tolist() == [0, 0, 1, 0]


def test_no_trace_shows_if_rows_have_changed_between_runs(con: duckdb.DuckDBPyConnection) -> None:
    """Without a trace, runs share the codes of equal rows."""
    shown: dict[bool, list[str]] = {True: [], False: []}
    for change, statements in shown.items():
        con.execute(f"CREATE OR REPLACE TABLE t ({TYPES})")
        engine = DuckDBEngine(con, statements.append)
        table = engine.table("t")
        bound = domain().bind(table.columns)
        coding = Coding(bound, PrivacyUnit("row"), trees=1, sample="all", salt=1)
        with engine.snapshot(table, shared=True) as rows:
            rows.encode(coding, last=True)
            if change:
                con.execute("INSERT INTO t VALUES ('x', 1, 1.0, 1, true, 'no')")
            rows.encode(coding, last=True)
    steps = [
        [line for sql in statements for line in sql.splitlines() if line.startswith("-- ")]
        for statements in shown.values()
    ]
    assert steps[0] == steps[1]
    assert len(steps[0]) > 4


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
        rows = encode(
            engine,
            table,
            bound,
            PrivacyUnit("row"),
            trees=trees,
            sample="all",
            salt=1,
            likely_rows=likely_rows,
        )
        shown: list[str] = []
        rows._stored.statements.trace = shown.append
        counts = rows.count_classes(0, trees) + rows.count_pairs(0, range(bound.cells[0]))
        for splits, nodes in ((first, trees + 2), (second, trees + 2 + bound.cells[0])):
            rows.route(splits, nodes)
            counts += rows.count_classes(nodes - 2, 2)
            counts += rows.count_classes(trees, nodes - trees)
        found.append([table.tolist() for table in counts])
        steps.append(sum("for all attributes" in statement for statement in shown))
        rows._stored.statements.trace = None
    assert found[0] == found[1] == found[2]
    assert steps == [0, 6, 0]


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


@pytest.mark.parametrize("word", [63, 8])  # bits of a column of codes
@some(("entries", "joins"), [(1024, 32), (0, 32), (0, 2)], keep=2)
def test_routing_agrees_with_branches(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    word: int,
    entries: int,
    joins: int,
) -> None:
    monkeypatch.setattr("dpforest_duckdb.engine.packing.WORD", word)
    monkeypatch.setattr("dpforest_duckdb.engine.routing.MAX_LIST", entries)
    monkeypatch.setattr(
        "dpforest_duckdb.engine.stored_rows.MAX_JOINS", joins
    )  # trees of one statement
    made = fill(con)
    bound = domain().bind(DuckDBEngine(con).table("t").columns)
    kept = [row for row in made if row[-1] in bound.classes]
    codes = np.array(
        [[a.code(v) for a, v in zip(bound.attributes, row, strict=False)] for row in kept]
    )
    labels = np.array([bound.classes.index(row[-1]) for row in kept])
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
    kept = [row for row in made if row[-1] in bound.classes]
    codes = np.array(
        [[a.code(v) for a, v in zip(bound.attributes, row, strict=False)] for row in kept]
    )
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
    classes = [bound.classes.index(row[-1]) for row in kept]
    assert found == Counter(zip(*(g.tolist() for g in given), classes, strict=True))
    assert (rows.count_leaves(0, nodes) == before).all(), "the rows stay where they were"


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
    found = blocks(cells, classes)
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
        tables = block.marginals(code, key, many, 4)
        for a, table in zip(block.attributes, tables, strict=True):
            for own in range(4):
                counted = np.bincount(rows[key == own, a], minlength=cells[a])
                assert (table[own] == counted * (2**40 + 1)).all()


def parts(rows: DuckDBRows, trees: int) -> list[int]:
    return rows.count_leaves(0, trees).sum(axis=1).tolist()


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


def with_units(con: duckdb.DuckDBPyConnection, unit_type: str, values: Sequence[object]) -> None:
    con.execute(f"CREATE TABLE t ({TYPES}, who {unit_type})")
    for i, value in enumerate(values):
        con.execute("INSERT INTO t VALUES ('x', ?, 1.0, 1, true, 'no', ?)", [i % 5, value])


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_rows_per_unit_are_bounded_in_sql(con: duckdb.DuckDBPyConnection, bound: int) -> None:
    people = ["p", "p", "p", "p", "q", "q", "r", None, None]
    with_units(con, "VARCHAR", people)
    rows = coded(con, PrivacyUnit("who", bound))
    kept = sum(min(n, bound) for p, n in Counter(people).items() if p is not None)
    assert rows.count_leaves(0, 1).sum() == kept


def test_bounding_does_not_depend_on_row_order(con: duckdb.DuckDBPyConnection) -> None:
    with_units(con, "INTEGER", [i // 5 for i in range(200)])
    first = [c.tolist() for c in coded(con, PrivacyUnit("who", 2)).count_classes(0, 1)]
    con.execute("CREATE TABLE u AS SELECT * FROM t ORDER BY hash(b, who)")
    con.execute("DROP TABLE t")
    con.execute("ALTER TABLE u RENAME TO t")
    assert [c.tolist() for c in coded(con, PrivacyUnit("who", 2)).count_classes(0, 1)] == first


@pytest.mark.parametrize(
    ("unit_type", "values"),
    [
        ("VARCHAR COLLATE NOCASE", ["anna", "ANNA", "Anna", "aNNa"]),
        ("DOUBLE", [0.0, -0.0, 0.0, -0.0]),
        ("VARCHAR", ["same"] * 4),
    ],
)
def test_what_the_database_calls_equal_is_one_unit(
    con: duckdb.DuckDBPyConnection, unit_type: str, values: Sequence[object]
) -> None:
    with_units(con, unit_type, values)
    assert coded(con, PrivacyUnit("who", 1)).count_leaves(0, 1).sum() == 1
    for salt in range(8):
        spread = parts(coded(con, PrivacyUnit("who", 9), trees=16, disjoint=True, salt=salt), 16)
        assert sorted(spread)[-1] == 4


def difference(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray], nodes: Sequence[int]
) -> int:
    """The most that the counts of an attribute differ by, in sum over the nodes."""
    pairs = zip(before, after, strict=True)
    return max(int(abs(one[nodes] - other[nodes]).sum()) for one, other in pairs)


def counted(rows: DuckDBRows, trees: int, splits: Splits) -> list[np.ndarray]:
    """The counts of the roots and of the children of a split of each."""
    roots = rows.count_classes(0, trees)
    rows.route(splits, 3 * trees)
    below = rows.count_classes(0, 3 * trees)
    return [np.concatenate(both) for both in zip(roots, below, strict=True)]


@pytest.mark.parametrize("disjoint", [False, True])
@some("bound", [1, 2, 4], keep=2)
def test_neighbours_that_differ_by_a_whole_unit(
    con: duckdb.DuckDBPyConnection, bound: int, disjoint: bool
) -> None:
    """With all rows of a person or with none: each depth of each tree differs by the bound."""
    random = np.random.default_rng(bound)
    people = [str(p) for p in random.integers(0, 6, 30)]
    with_units(con, "VARCHAR", people)
    con.execute("UPDATE t SET a = CASE WHEN hash(b, who) % 2 = 0 THEN 'y' ELSE a END")
    trees = 3
    splits = Splits([0, 1, 2], [1, 1, 3], [THRESHOLD, THRESHOLD, EQUALS], [0, 1, 2], [3, 5, 7])
    unit = PrivacyUnit("who", bound)
    both = counted(coded(con, unit, trees=trees, disjoint=disjoint), trees, splits)
    # the tables' rows of each tree: its root, and the children of its split
    of_trees = [[[tree], [2 * trees + 2 * tree, 2 * trees + 2 * tree + 1]] for tree in range(trees)]
    most = 0
    for person in sorted(set(people)):
        con.execute("CREATE OR REPLACE TABLE kept AS FROM t")
        con.execute("DELETE FROM t WHERE who = ?", [person])
        without = counted(coded(con, unit, trees=trees, disjoint=disjoint), trees, splits)
        con.execute("CREATE OR REPLACE TABLE t AS FROM kept")
        changes = np.array(
            [[difference(both, without, nodes) for nodes in depths] for depths in of_trees]
        )
        assert changes.max() <= bound, "of a tree, at a depth"
        assert not disjoint or (changes.any(axis=1)).sum() <= 1, "one tree has the person"
        most = max(most, changes.max())
    assert most == min(bound, 4), "the bound is reached: the test can fail"


@pytest.mark.parametrize("bound", [1, 2])
def test_a_patient_of_a_real_table_moves_no_more_than_the_bound(
    con: duckdb.DuckDBPyConnection, real: Callable[[str], Path], bound: int
) -> None:
    """Some patients are in the table more often than once."""
    name = "breast_cancer_wisconsin"
    engine, public = DuckDBEngine(con), load_domain(real(name))
    unit = PrivacyUnit(public.identifiers[0], bound)
    column = engine.dialect.ident(unit.column)
    bound_domain = public.without(unit.column).bind(engine.table(name).columns)

    def counts() -> list[np.ndarray]:
        rows = encode(engine, engine.table(name), bound_domain, unit, trees=1, sample="all", salt=1)
        return rows.count_classes(0, 1)

    often = con.execute(
        f"SELECT {column} FROM {name} GROUP BY 1 HAVING count(*) > 1 ORDER BY count(*) DESC, 1"
    ).fetchall()[:8]
    whole, changes = counts(), []
    for (patient,) in often:
        con.execute(f"CREATE OR REPLACE TABLE kept AS FROM {name}")
        con.execute(f"DELETE FROM {name} WHERE {column} = ?", [patient])
        changes.append(difference(whole, counts(), [0]))
        con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM kept")
    assert max(changes) == bound


def test_units_without_a_name_are_dropped(con: duckdb.DuckDBPyConnection) -> None:
    with_units(con, "DOUBLE", [None, float("nan"), float("nan"), 1.0])
    assert coded(con, PrivacyUnit("who", 5)).count_leaves(0, 1).sum() == 1


def test_only_base_tables_have_a_budget(con: duckdb.DuckDBPyConnection) -> None:
    engine = DuckDBEngine(con)
    con.execute("CREATE TABLE t (x INTEGER)")
    con.execute("CREATE VIEW v AS FROM t")
    con.execute("CREATE TEMP TABLE w (x INTEGER)")
    con.execute("CREATE SCHEMA s")
    con.execute('CREATE TABLE s."a.b" (x INTEGER)')
    assert engine.table("T").name == "t"
    assert engine.table('s."a.b"').schema == "s"
    for name, sentence in (
        ("v", "is a view"),
        ("w", "temporary"),
        ("nothing", "no table"),
        ("t; DROP TABLE t", "no table"),
    ):
        with pytest.raises(DpforestError, match=sentence):
            engine.table(name)
    con.execute("CREATE TEMP TABLE t (x INTEGER)")
    with pytest.raises(DpforestError, match="hidden by a temporary"):
        engine.table("t")


def test_errors_of_the_database_quote_no_data(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT 'alice@example.com' AS x")
    with pytest.raises(DpforestError) as caught:
        DuckDBEngine(con).run("SELECT CAST(x AS INTEGER) FROM t", step="encode")
    assert "alice" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


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
    bound = domain().without(unit.column).bind(table.columns)
    rows = encode(
        engine,
        table,
        bound,
        unit,
        trees=trees,
        sample=sample,
        salt=1,
        first_phase=first_phase,
        misclassified_weight=3,
    )
    return rows.count_classes(0, trees)


def test_rows_that_half_of_the_first_phase_trees_get_wrong_count_more_often(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """Class 0 ("no") is wrong by one tree of two, class 1 by both, or neither."""
    fill(con)
    plain = judged(con, PrivacyUnit("row"), "all")
    both = judged(con, PrivacyUnit("row"), "all", constant(0), constant(0))
    third = judged(con, PrivacyUnit("row"), "all", constant(0), constant(0), split_on(4, 1))
    for before, after, more in zip(plain, both, third, strict=True):
        assert (after[:, :, 0] == before[:, :, 0]).all()
        assert (after[:, :, 1] == 3 * before[:, :, 1]).all()
        assert (more == after).all()
    half = judged(con, PrivacyUnit("row"), "all", constant(0), constant(1))
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
    drawn = judged(con, PrivacyUnit("row"), "bootstrap", constant(0), constant(0))[0]
    assert drawn[:, :, 0].sum() == 0
    assert (drawn.sum(axis=(1, 2)) == kept).all()
    con.execute("UPDATE t SET k = CASE WHEN e THEN 'no' ELSE 'yes' END")
    nobody = judged(con, PrivacyUnit("row"), "bootstrap", split_on(4, 0))[0]
    assert nobody.sum() == 0, "the tree is right everywhere"


def test_the_salt_is_bound_not_written(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, 10)
    shown: list[str] = []
    engine = DuckDBEngine(con, shown.append)
    table = engine.table("t")
    encode(
        engine,
        table,
        domain().bind(table.columns),
        PrivacyUnit("row"),
        trees=3,
        sample="disjoint",
        salt=123456789123,
    )
    assert shown
    assert "123456789123" not in "".join(shown)


def test_a_new_spill_folder_that_another_run_swept_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = tempfile.mkdtemp

    def swept_once(**given: Any) -> str:
        made.append(make(**given))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept_once)
    with open_database(MEMORY, temp_dir=tmp_path):
        assert [str(path) for path in tmp_path.iterdir()] == made[1:]
    assert not list(tmp_path.iterdir())


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
        unit = PrivacyUnit("row")
        rows.encode(Coding(bound, unit, trees=1, sample="all", salt=1))
        coded = rows.encode(Coding(bound, unit, trees=90, sample="all", salt=1))
        split = [root for root in range(90) if root != 85]
        kinds, ones = [EQUALS] * len(split), [1] * len(split)
        first = list(range(90, 90 + 2 * len(split), 2))
        nodes = 90 + 2 * len(split)
        coded.route(Splits(split, [0] * len(split), kinds, ones, first), nodes)
        assert coded.count_leaves(0, nodes)[85].tolist() == [10, 10, 10]


def test_products_are_summed_in_several_statements(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 2 AS a, i % 3 AS b, 'yes' AS k FROM range(9) r(i)")
    columns = [
        {"name": "a", "kind": "categorical", "domain": [0, 1], "nullable": False},
        {"name": "b", "kind": "categorical", "domain": [0, 1, 2], "nullable": False},
        {"name": "k", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain_from_mapping({"target": "k", "column": columns}).bind(table.columns)
    rows = encode(engine, table, bound, PrivacyUnit("row"), trees=1, sample="all", salt=1)
    monkeypatch.setattr("dpforest_duckdb.engine.rows.MAX_SUMS", 2)
    positions = {0: np.array([[1], [10], [0]]), 1: np.array([[1, 2], [0, 5], [7, 3], [0, 0]])}
    placed = np.array([[*positions[0][i % 2], *positions[1][i % 3]] for i in range(9)])
    assert rows.sum_products(positions).tolist() == (placed.T @ placed).tolist()


def test_the_last_of_256_cells_is_looked_up(con: duckdb.DuckDBPyConnection) -> None:
    """Its number is the largest of its type."""
    con.execute("CREATE TABLE t AS SELECT 'outside' AS a, 'yes' AS k FROM range(3)")
    columns = [
        {"name": "a", "kind": "categorical", "domain": list(range(255)), "nullable": False},
        {"name": "k", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain_from_mapping({"target": "k", "column": columns}).bind(table.columns)
    assert bound.cells == (256,)
    rows = encode(engine, table, bound, PrivacyUnit("row"), trees=1, sample="all", salt=1)
    assert rows.sum_products({0: np.arange(256)[:, None]}).tolist() == [[3 * 255**2]]
    tree = one_split(bound, 0)
    votes = np.zeros_like(tree.votes)
    votes[-1] = 0, 10
    rows.add_votes([replace(tree, votes=votes)])
    leaf = rows.sum_gradients([tree], Gradients(2**16, 1, 1))[0][-1]
    assert leaf.tolist() == [3 * (2**16 - 2**15), 3 * 2**14]


@pytest.mark.parametrize("edges", [64, 65, 127, 128, 250])
@some("last", [2**63 - 1, 2**63, 10**20], keep=4)
def test_edges_are_searched_for_up_to_the_last_one_and_beyond_the_type(
    con: duckdb.DuckDBPyConnection, edges: int, last: int
) -> None:
    """A bound may be larger than any value of its column."""
    limits = [*range(0, 3 * (edges - 1), 3), last]
    con.execute("CREATE TABLE t AS SELECT i AS x, 'yes' AS k FROM range(-2, 760) AS r(i)")
    con.execute("INSERT INTO t VALUES (9223372036854775807, 'yes')")
    columns = [
        {"name": "x", "kind": "numeric", "edges": limits, "nullable": False},
        {"name": "k", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain_from_mapping({"target": "k", "column": columns}).bind(table.columns)
    rows = encode(engine, table, bound, PrivacyUnit("row"), trees=1, sample="all", salt=1)
    expected = Counter(bound.attributes[0].code(value) for value in [*range(-2, 760), 2**63 - 1])
    found = rows.count_classes(0, 1)[0][0, :, 1]
    assert {cell: n for cell, n in enumerate(found.tolist()) if n} == expected


@some(
    ("kind", "low", "high"),
    [
        ("TINYINT", -128, 127),
        ("UTINYINT", 0, 255),
        ("SMALLINT", -(2**15), 2**15 - 1),
        ("USMALLINT", 0, 2**16 - 1),
        ("INTEGER", -(2**31), 2**31 - 1),
        ("UINTEGER", 0, 2**32 - 1),
        ("BIGINT", -(2**63), 2**63 - 1),
        ("UBIGINT", 0, 2**64 - 1),
        ("HUGEINT", -(2**126), 2**126),
    ],
    keep=4,
)
@pytest.mark.parametrize(
    "first",
    [
        -100,
        2**62 - 1100,
        *(pytest.param(first, marks=pytest.mark.slow) for first in (-900, 0, 100)),
    ],
)
@pytest.mark.parametrize("wide", [3, 250, MAX_LOOKED_UP - 1, MAX_LOOKED_UP])
def test_whole_numbers_get_the_cells_that_python_gives_them(
    con: duckdb.DuckDBPyConnection, kind: str, low: int, high: int, first: int, wide: int
) -> None:
    """Those of a narrow range are looked up in a list. A bound may be beyond the type."""
    edges = sorted({first, first + 1, *range(first + 3, first + wide, 7), first + wide})
    columns = [
        {"name": "x", "kind": "numeric", "edges": edges},
        {"name": "k", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    near = (edge + more for edge in edges for more in (-1, 0, 1))
    values = [None, low, high, *(value for value in near if low <= value <= high)]
    con.execute(f"CREATE TABLE t AS SELECT unnest(?)::{kind} AS x, 'yes' AS k", [values])
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain_from_mapping({"target": "k", "column": columns}).bind(table.columns)
    attribute = bound.attributes[0]
    rows = encode(engine, table, bound, PrivacyUnit("row"), trees=1, sample="all", salt=1)
    found = rows.count_classes(0, 1)[0][0, :, 1]
    expected = Counter(map(attribute.code, values))
    assert {cell: n for cell, n in enumerate(found.tolist()) if n} == expected
    looked_up = engine.dialect.looked_up(attribute, engine.dialect.ident("x"))
    assert (looked_up is not None) == (wide < MAX_LOOKED_UP)


@some(
    "kind",
    ["DOUBLE", "FLOAT", "TINYINT", "INTEGER", "UBIGINT", "HUGEINT", "DECIMAL(9, 2)", "DATE"],
    keep=3,
)
def test_numbers_with_many_edges_get_the_cells_that_python_gives_them(
    con: duckdb.DuckDBPyConnection, kind: str
) -> None:
    """They are searched for, if their type compares with a list as with a CASE, or looked up."""
    random = np.random.default_rng(0)
    con.execute(f"CREATE TABLE t (x {kind}, unused INTEGER, k VARCHAR)")
    edges: list[Any] = sorted({*random.integers(-90, 90, 170).tolist(), 0})
    values: list[Any] = [None, *range(128 if kind[0] in "TI" else 200)]
    if kind in ("INTEGER", "UBIGINT"):  # too far apart to be looked up
        edges = [9 * edge for edge in edges]
        values = [None, *(value for n in range(128) for value in (9 * n, 9 * n + 1))]
    if kind == "DATE":
        edges = [date(2000, 1, 1) + timedelta(days=edge) for edge in edges]
        values = [None, *(date(2000, 1, 1) + timedelta(days=n) for n in range(-100, 100))]
    elif kind != "UBIGINT":
        values += [-value for value in values[1:]]
    if kind in ("DOUBLE", "FLOAT"):
        edges = sorted({*(edge / 7 for edge in edges), 0.0})
        values += [float("nan"), float("inf"), -float("inf"), -0.0, 1e-300, *edges]
    con.executemany("INSERT INTO t VALUES (?, 1, 'yes')", [[value] for value in values])
    stored = [value for (value,) in con.execute("SELECT x FROM t").fetchall()]
    columns = [
        {"name": "x", "kind": "numeric", "edges": edges},
        {"name": "k", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain_from_mapping({"target": "k", "column": columns}).bind(table.columns)
    rows = encode(engine, table, bound, PrivacyUnit("row"), trees=1, sample="all", salt=1)
    expected = Counter(bound.attributes[0].code(value) for value in stored)
    found = rows.count_classes(0, 1)[0][0, :, 1]
    assert {cell: n for cell, n in enumerate(found.tolist()) if n} == expected


def test_errors_of_python_in_a_statement_show_no_value() -> None:
    """As one of DuckDB's extension for SQLite about a text that is no Unicode."""

    def read() -> None:
        b"secret\xff".decode()

    with pytest.raises(DpforestError, match=r"step read \(UnicodeDecodeError\)") as failed:
        DuckDBEngine(duckdb.connect()).call(read, step="read")
    assert "secret" not in str(failed.value)
    assert failed.value.__context__ is None or failed.value.__suppress_context__
