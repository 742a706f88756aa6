"""Rows of a privacy unit are bounded, stay in one tree, and change counts by the bound at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest
from coded_tables import TYPES, coded, parts
from steps import encode
from variants import some

from dpforest_duckdb.domain.file import load_domain
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.tree import EQUALS, THRESHOLD


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


@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("unit", ["i", "'patient ' || i", "i + 0.5::DOUBLE"])
def test_units_with_the_same_rows_do_not_all_use_the_same_of_them(
    con: duckdb.DuckDBPyConnection, unit: str, bound: int
) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT ['x', 'y'][1 + n % 2] AS a, n AS b, 1.0 AS c, 1 AS d, true AS e, "
        f"['no', 'yes'][1 + n % 2] AS k, {unit} AS who FROM range(1000) i(i), range(4) n(n)"
    )
    for salt in range(5):
        values = coded(con, PrivacyUnit("who", bound), salt=salt).count_classes(0, 1)[1]
        for kept in values[0].sum(axis=-1)[:4]:  # of each value of b, about bound in four
            assert abs(kept - 250 * bound) < 75, (salt, values.tolist())


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
    bound_domain = public.without(unit.columns).bind(engine.table(name).columns)

    def counts() -> list[np.ndarray]:
        rows = encode(engine, engine.table(name), bound_domain, unit)
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


@pytest.mark.parametrize(("kind", "bits"), [("FLOAT", 24), ("DOUBLE", 53)])
def test_numbers_that_two_units_may_have_been_rounded_to_are_dropped(
    con: duckdb.DuckDBPyConnection, kind: str, bits: int
) -> None:
    """All whole numbers below 2^bits are numbers of this type, 2^bits + 1 is none."""
    largest = 2**bits
    with_units(con, kind, [largest + 1, largest, -largest, largest - 1, 1 - largest, 0.5])
    assert coded(con, PrivacyUnit("who", 5)).count_leaves(0, 1).sum() == 3
