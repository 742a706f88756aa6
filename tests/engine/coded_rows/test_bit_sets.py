"""Bit sets find the leaf of the tree. Where they would take longer, a CASE is used."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from found_leaves import domain, leaves_by_sql

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.coded_rows.bit_sets import BitSets
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.learners.boosting import random_trees
from dpforest_duckdb.learners.growth import one_split
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.scoring.dialects.duckdb import DuckDB
from dpforest_duckdb.tree import Tree

IDENT = DuckDB().ident


def found(tree: Tree, of: Domain) -> BitSets | None:
    return BitSets.of(Layout(of.cells, 2, IDENT), tree, IDENT, "left")


def random_tree(of: Domain, depth: int) -> Tree:
    weights = np.ones(len(of.attributes))
    (tree,) = random_trees(of, 1, depth, weights, SecureBits())
    return tree


@pytest.mark.parametrize(
    ("cells", "attributes", "depth", "words"),
    [(4, 6, 4, 1), (8, 4, 6, 1), (12, 3, 7, 2), (17, 3, 8, 3), (40, 1, 9, 1), (256, 1, 6, 1)],
)
def test_every_combination_of_codes_has_the_leaf_of_the_tree(
    cells: int, attributes: int, depth: int, words: int
) -> None:
    made = domain(cells, attributes)
    sets = None
    while sets is None or len(sets.words) < words:
        tree = random_tree(made, depth)
        if len(np.unique(tree.attribute)) > attributes:  # one of them is -1, of leaves
            sets = found(tree, made)
    codes = np.array(list(product(*map(range, made.cells))))
    layout = Layout(made.cells, 2, IDENT)
    assert leaves_by_sql([sets.words], sets.node, layout, codes) == tree.find(codes).tolist()


def test_a_case_is_taken_if_bit_sets_need_many_look_ups_or_long_lists() -> None:
    assert found(random_tree(domain(8, 3), 7), domain(8, 3)) is not None
    wide = domain(8, 40)
    assert found(random_tree(wide, 7), wide) is None, "two words for each of about forty attributes"
    long = domain(2000, 3)
    assert found(random_tree(long, 5), long) is None, "a list of 2,000 for each attribute"


def test_a_tree_without_a_split_has_no_words() -> None:
    made = domain(3, 2)
    split = one_split(made, 0)
    leaf = split.cut(np.ones(split.nodes, dtype=np.bool_), made.cells)
    assert found(leaf, made) is None
    assert found(split, made) is not None
