"""A table with values of every kind, and its rows as an engine codes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
from steps import encode

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit

CLASSES = {"name": "k", "kind": "categorical", "domain": ["no", "yes"]}
COLUMNS = [
    {"name": "a", "kind": "categorical", "domain": ["x", "y"], "nullable": True},
    {"name": "b", "kind": "numeric", "lower": 0, "upper": 3, "nullable": True},
    {"name": "c", "kind": "numeric", "edges": [0.5, 1.5], "nullable": False},
    {"name": "d", "kind": "categorical", "domain": [1, 2, 3], "nullable": False},
    {"name": "e", "kind": "categorical", "domain": [True, False], "nullable": False},
    CLASSES,
]
TYPES = "a VARCHAR, b INTEGER, c DOUBLE, d INTEGER, e BOOLEAN, k VARCHAR"


def domain() -> Domain:
    return domain_from_mapping({"target": "k", "column": COLUMNS})


def coded(
    con: duckdb.DuckDBPyConnection,
    unit: PrivacyUnit = ROW,
    *,
    trees: int = 1,
    disjoint: bool = False,
    salt: int = 1,
) -> DuckDBRows:
    engine = DuckDBEngine(con)
    table = engine.table("t")
    bound = domain().without(unit.columns).bind(table.columns)
    return encode(
        engine, table, bound, unit, trees=trees, sample="disjoint" if disjoint else "all", salt=salt
    )


def coded_as(con: duckdb.DuckDBPyConnection, *columns: dict[str, Any]) -> tuple[DuckDBRows, Domain]:
    """The rows of the table t, whose classes are k, as these columns have them; and the domain."""
    engine = DuckDBEngine(con)
    table = engine.table("t")
    content = {"target": "k", "column": [*columns, CLASSES]}
    bound = domain_from_mapping(content).bind(table.columns)
    return encode(engine, table, bound), bound


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


def python_codes(rows: Sequence[tuple], bound: Domain) -> tuple[np.ndarray, np.ndarray]:
    """Python's own codes `[row, attribute]` of the rows with a class, and the classes' numbers."""
    kept = [row for row in rows if row[-1] in bound.classes]
    codes = [[a.code(v) for a, v in zip(bound.attributes, row, strict=False)] for row in kept]
    return np.array(codes), np.array([bound.classes.index(row[-1]) for row in kept])


def python_counts(rows: Sequence[tuple], bound: Domain) -> list[np.ndarray]:
    """What the SQL must count, from Python's own coding of the rows."""
    codes, labels = python_codes(rows, bound)
    found = []
    for number, attribute in enumerate(bound.attributes):
        table = np.zeros((1, attribute.cells, len(bound.classes)), dtype=np.int64)
        np.add.at(table[0], (codes[:, number], labels), 1)
        found.append(table)
    return found


def parts(rows: DuckDBRows, trees: int) -> list[int]:
    return rows.count_leaves(0, trees).sum(axis=1).tolist()
