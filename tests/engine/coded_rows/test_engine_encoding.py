"""Values get the codes that Python gives them, and statements show no salt."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest
from coded_tables import TYPES, coded, coded_as, domain, fill, python_counts
from steps import encode
from variants import some

from dpforest_duckdb.engine.base import Coding, Gradients
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners.growth import one_split
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.scoring.codes import MAX_LOOKED_UP, DuckDBCodes


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


def test_an_enum_is_coded_byte_by_byte_whatever_the_setting(con: duckdb.DuckDBPyConnection) -> None:
    """Also if the domain lists other values than the type, or another order."""
    fill(con)
    con.execute("UPDATE t SET a = upper(a) WHERE e")
    con.execute("SET GLOBAL default_collation = 'NOCASE'")
    types = TYPES.replace("a VARCHAR", "a ENUM ('y', 'X', 'x', 'Y', 'zzz', 'ZZZ', '')")
    con.execute(f"CREATE TABLE u ({types})")
    con.execute("INSERT INTO u FROM t")
    con.execute("DROP TABLE t")
    con.execute("ALTER TABLE u RENAME TO t")
    made = con.execute("FROM t").fetchall()
    bound = domain().bind(DuckDBEngine(con).table("t").columns)
    for got, want in zip(coded(con).count_classes(0, 1), python_counts(made, bound), strict=True):
        assert (got == want).all()


def test_runs_that_share_codes_see_a_change_of_case(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE t ({TYPES.replace('VARCHAR', 'VARCHAR COLLATE NOCASE')})")
    con.execute("INSERT INTO t VALUES ('x', 1, 1.0, 1, true, 'no')")
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain().bind(table.columns)
    coding = Coding(bound, ROW, trees=1, sample="all", salt=1)
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
        coding = Coding(bound, ROW, trees=1, sample="all", salt=1)
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


def test_the_salt_is_bound_not_written(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, 10)
    shown: list[str] = []
    engine = DuckDBEngine(con, shown.append)
    table = engine.table("t")
    encode(
        engine, table, domain().bind(table.columns), trees=3, sample="disjoint", salt=123456789123
    )
    assert shown
    assert "123456789123" not in "".join(shown)


def test_the_last_of_256_cells_is_looked_up(con: duckdb.DuckDBPyConnection) -> None:
    """Its number is the largest of its type."""
    con.execute("CREATE TABLE t AS SELECT 'outside' AS a, 'yes' AS k FROM range(3)")
    rows, bound = coded_as(
        con, {"name": "a", "kind": "categorical", "domain": list(range(255)), "nullable": False}
    )
    assert bound.cells == (256,)
    assert rows.sum_products({0: np.arange(256)[:, None]}).tolist() == [[3 * 255**2]]
    tree = one_split(bound, 0)
    votes = np.zeros_like(tree.votes)
    votes[-1] = 0, 10
    rows.add_votes([replace(tree, votes=votes)])
    leaf = rows.sum_gradients([tree], Gradients(2**16, 1, 1))[0][-1]
    assert leaf.tolist() == [3 * (2**16 - 2**15), 3 * 2**14]


@some(("last", "edges"), product([2**63 - 1, 2**63, 10**20], [64, 65, 127, 128, 250]), keep=8)
def test_edges_are_searched_for_up_to_the_last_one_and_beyond_the_type(
    con: duckdb.DuckDBPyConnection, edges: int, last: int
) -> None:
    """A bound may be larger than any value of its column."""
    limits = [*range(0, 3 * (edges - 1), 3), last]
    con.execute("CREATE TABLE t AS SELECT i AS x, 'yes' AS k FROM range(-2, 760) AS r(i)")
    con.execute("INSERT INTO t VALUES (9223372036854775807, 'yes')")
    rows, bound = coded_as(
        con, {"name": "x", "kind": "numeric", "edges": limits, "nullable": False}
    )
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
@some(
    ("first", "wide"),
    product([-100, 2**62 - 1100, -900, 0, 100], [3, 250, MAX_LOOKED_UP - 1, MAX_LOOKED_UP]),
    keep=5,
)
def test_whole_numbers_get_the_cells_that_python_gives_them(
    con: duckdb.DuckDBPyConnection, kind: str, low: int, high: int, first: int, wide: int
) -> None:
    """Those of a narrow range are looked up in a list. A bound may be beyond the type."""
    edges = sorted({first, first + 1, *range(first + 3, first + wide, 7), first + wide})
    near = (edge + more for edge in edges for more in (-1, 0, 1))
    values = [None, low, high, *(value for value in near if low <= value <= high)]
    con.execute(f"CREATE TABLE t AS SELECT unnest(?)::{kind} AS x, 'yes' AS k", [values])
    rows, bound = coded_as(con, {"name": "x", "kind": "numeric", "edges": edges})
    attribute = bound.attributes[0]
    found = rows.count_classes(0, 1)[0][0, :, 1]
    expected = Counter(map(attribute.code, values))
    assert {cell: n for cell, n in enumerate(found.tolist()) if n} == expected
    dialect = DuckDBCodes()
    looked_up = dialect.looked_up(attribute, dialect.ident("x"))
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
    rows, bound = coded_as(con, {"name": "x", "kind": "numeric", "edges": edges})
    expected = Counter(bound.attributes[0].code(value) for value in stored)
    found = rows.count_classes(0, 1)[0][0, :, 1]
    assert {cell: n for cell, n in enumerate(found.tolist()) if n} == expected


def test_numbers_with_few_edges_many_and_the_same_are_searched_for_together(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """Each list has its own steps, and equal lists are written once."""
    edges = {"few": range(0, 170, 10), "many": range(-100, 100), "same": range(-100, 100)}
    values = [*(n / 2 for n in range(-240, 280)), -math.inf, math.inf, math.nan, None]
    con.execute("CREATE TABLE t (few DOUBLE, many DOUBLE, same DOUBLE, k VARCHAR)")
    con.executemany("INSERT INTO t VALUES ($1, $1, $1, 'yes')", [[value] for value in values])
    rows, bound = coded_as(
        con,
        *({"name": name, "kind": "numeric", "edges": list(some)} for name, some in edges.items()),
    )
    for attribute, counts in zip(bound.attributes, rows.count_classes(0, 1), strict=True):
        found = {cell: n for cell, n in enumerate(counts[0, :, 1].tolist()) if n}
        assert found == Counter(map(attribute.code, values))
