"""Look-ups below a CASE find the leaf of the tree. Where they would take longer, there are none."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import pytest
from found_leaves import domain, leaves_by_sql
from steps import encode

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.engine.base import Gradients
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.lower_levels import UPPER, LowerLevels
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners.boosting import random_trees
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.scoring.dialects.duckdb import DuckDB
from dpforest_duckdb.tree import EQUALS, LEAF, THRESHOLD, Tree, branch_of

IDENT = DuckDB().ident
EVERY_SECOND = (True, False)


def complete_tree(of: Domain, depth: int) -> Tree:
    """A tree whose splits are drawn, until both kinds of them are below the CASE."""
    while True:
        (tree,) = random_trees(of, 1, depth, np.ones(len(of.attributes)), SecureBits())
        below = set(tree.kind[2**UPPER - 1 : tree.nodes // 2].tolist())
        if tree.nodes == 2 ** (depth + 1) - 1 and below == {THRESHOLD, EQUALS}:
            return tree


def found(tree: Tree, of: Domain) -> LowerLevels | None:
    return LowerLevels.of(Layout(of.cells, 2, IDENT), tree, IDENT, "lower")


def rows_near_splits(tree: Tree, cells: int, attributes: int) -> np.ndarray:
    """Codes of 3,000 rows. Half of the splits on a row's way down have the row's code as cell:
    else the first branch of a split by one of thousands of values would have no rows.
    """
    random = np.random.default_rng(1)
    codes = random.integers(0, cells, (3000, attributes))
    for row in codes:
        node = 0
        while tree.kind[node] != LEAF:
            if random.random() < 0.5:
                row[tree.attribute[node]] = tree.cell[node]
            code = row[tree.attribute[node]]
            node = tree.first[node] + branch_of(tree.kind[node], tree.cell[node], code)
    return codes


@pytest.mark.parametrize(
    ("cells", "attributes", "depth"),
    [(9, 8, 7), (9, 15, 8), (17, 12, 9), (4000, 5, 8)],
)
def test_every_row_has_the_leaf_of_the_tree(cells: int, attributes: int, depth: int) -> None:
    made = domain(cells, attributes, ordered=EVERY_SECOND)
    layout = Layout(made.cells, 2, IDENT)
    assert len(layout.words) == 1
    tree = complete_tree(made, depth)
    lower = found(tree, made)
    assert lower is not None
    assert len(lower.layers) == 2 * (depth - UPPER)
    codes = rows_near_splits(tree, cells, attributes)
    nodes = leaves_by_sql(lower.layers, lower.node, layout, codes)
    assert nodes == tree.find(codes).tolist()
    assert len(set(nodes)) > 2**UPPER


def test_a_case_is_taken_for_small_incomplete_and_wide_trees() -> None:
    made = domain(9, 8, ordered=EVERY_SECOND)
    assert found(complete_tree(made, UPPER + 1), made) is not None
    (small,) = random_trees(made, 1, UPPER, np.ones(8), SecureBits())
    assert found(small, made) is None
    large = complete_tree(made, UPPER + 1)
    cut = np.zeros(large.nodes, dtype=np.bool_)
    cut[2**UPPER - 1] = True  # this split becomes a leaf
    assert found(large.cut(cut, made.cells), made) is None
    wide = domain(9, 40, ordered=EVERY_SECOND)
    assert len(Layout(wide.cells, 2, IDENT).words) > 1
    assert found(complete_tree(wide, UPPER + 2), wide) is None, "its splits read several columns"


def test_the_numbers_of_nodes_matter() -> None:
    made = domain(9, 8, ordered=EVERY_SECOND)
    tree = complete_tree(made, UPPER + 1)
    first = tree.first.copy()
    first[[1, 2]] = first[[2, 1]]  # the children of one node are those of the other
    assert found(replace(tree, first=first), made) is None


def test_two_large_trees_in_one_statement_have_leaves_of_their_own() -> None:
    made = domain(9, 8, ordered=EVERY_SECOND)
    made = made.bind(dict.fromkeys([*(a.name for a in made.attributes), "y"], VARCHAR))
    columns = ", ".join(f"CAST(hash(i + {1000 * n}) % 9 AS VARCHAR) AS a{n}" for n in range(8))
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE t AS SELECT {columns}, if(hash(i) % 3 = 0, 'no', 'yes') AS y "
        "FROM range(3000) AS r(i)"
    )
    engine, scale = DuckDBEngine(con), Gradients(2**16, 2, 1)
    trees = [complete_tree(made, UPPER + levels) for levels in (2, 3)]

    def sums(of: list[Tree]) -> list[np.ndarray]:
        return encode(engine, engine.table("t"), made).sum_gradients(of, scale)

    alone = [sums([tree])[0] for tree in trees]
    for together, one in zip(sums(trees), alone, strict=True):
        assert np.array_equal(together, one)
        assert np.count_nonzero(one) > 2**UPPER
