"""Rows and domains for the tests of boosting."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.postprocess.voting import integer_votes, of_leaves, of_two
from dpforest_duckdb.privacy.amounts import ATTO
from dpforest_duckdb.tree import Tree

DELTA = ATTO // 10**5


def public(classes: int = 2) -> Domain:
    attributes = (
        Attribute("a", "categorical", ("x", "y", "z"), nullable=False),
        Attribute("n", "numeric", lower=0, upper=100),
        Attribute("b", "categorical", ("t", "u"), ordered=True),
    )
    types = {"a": VARCHAR, "n": INTEGER, "b": VARCHAR, "c": VARCHAR}
    return Domain(attributes, "c", tuple(f"c{i}" for i in range(classes))).bind(types)


def fill(con: duckdb.DuckDBPyConnection, rows: int, classes: int) -> None:
    con.execute("CREATE OR REPLACE TABLE t (a VARCHAR, n INTEGER, b VARCHAR, c VARCHAR)")
    con.execute(
        "INSERT INTO t SELECT ['x', 'y', 'z', 'q'][1 + i % 4], CASE WHEN i % 7 > 0 THEN i % 130"
        " END, ['t', 'u', NULL][1 + i % 3], 'c' || ((i * i + i // 5) % ?) FROM range(?) AS r(i)",
        [classes, rows],
    )


def voting(tree: Tree, random: np.random.Generator, classes: int, odds: float = 1.0) -> Tree:
    """The tree with log-odds of this standard deviation as votes of its leaves."""
    drawn = odds * random.normal(size=(tree.nodes, classes if classes > 2 else 1))
    votes = integer_votes(drawn if classes > 2 else of_two(drawn[:, 0]))
    return replace(tree, counts=None, votes=of_leaves(tree, votes), noise=None)


def numbers(classes: int, more: int = 0) -> Domain:
    """Three numbers, and some categories."""
    kinds = [Attribute(f"n{i}", "numeric", lower=0, upper=100, nullable=False) for i in range(3)]
    texts = [Attribute(f"a{i}", "categorical", ("x", "y", "z")) for i in range(more)]
    types = {**{f"n{i}": DOUBLE for i in range(3)}, **{f"a{i}": VARCHAR for i in range(more)}}
    labels = tuple(f"c{i}" for i in range(classes))
    return Domain((*kinds, *texts), "c", labels).bind({**types, "c": VARCHAR})
