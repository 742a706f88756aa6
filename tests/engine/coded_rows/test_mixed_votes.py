"""Rated mixtures: packed votes that rows look up give the points of their plain sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import duckdb
import numpy as np
import pytest
from row_points import points
from steps import encode
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.engine.base import MIXTURE_PARTS
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners.boosting import random_trees
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.tree import Tree

VALUES = {"a": ("x", "y", "z"), "b": ("t", "u"), "d": tuple("klmn")}
MIXTURES = ((20, 20, 20), (20, 0, 7), (0, 3, 0), (1, 14, 5), (0, 0, 0))


def public(classes: int) -> Domain:
    attributes = tuple(Attribute(name, "categorical", values) for name, values in VALUES.items())
    types = dict.fromkeys([*VALUES, "c"], VARCHAR)
    return Domain(attributes, "c", tuple(f"c{i}" for i in range(classes))).bind(types)


class Trees:
    """Trees of a domain with random votes, some of them below 0."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.random = domain, np.random.default_rng(len(domain.classes))

    def path(self, *attributes: int, mirrored: bool = False) -> Tree:
        """A tree of all values of one attribute after the other.

        If `mirrored`, the children of the first nodes come last.
        """
        growth = Growth(self.domain.cells, 1, len(self.domain.classes))
        leaves = np.arange(1)
        for attribute in attributes:
            first = growth.nodes
            growth.split_by_cell(leaves[::-1] if mirrored else leaves, attribute)
            leaves = np.arange(first, growth.nodes)
        (tree,) = growth.finished()
        return self.voting(tree)

    def voting(self, tree: Tree) -> Tree:
        votes = np.zeros_like(tree.votes)
        size = (len(tree.leaves), votes.shape[1])
        votes[tree.leaves] = 1000 * self.random.integers(-3000, 3000, size)
        if votes.shape[1] == 2:
            votes[:, 0] = -votes[:, 1]
        return replace(tree, votes=votes)


def models(kind: str, trees: Trees) -> Sequence[Sequence[Tree]]:
    one, two = trees.path(0, 1), trees.path(0, 2)
    if kind == "one root":
        return [one, two], [one, one], [trees.path(0), trees.path(0)]
    if kind == "the same places":
        return [one], [trees.voting(one)], [trees.voting(one), two]
    if kind == "several roots":
        return [one, trees.path(2)], [trees.path(0), trees.path(1, 2)], [two, trees.path()]
    if kind == "no path":
        return [trees.path(1, 1), trees.path(1, 0)], [trees.path(0, 1, mirrored=True)], [one]
    binary = [
        trees.voting(tree)
        for tree in random_trees(
            trees.domain, 3, 3, np.ones(len(trees.domain.attributes)), SecureBits()
        )
    ]
    return [binary[0], one], [binary[0], binary[1]], [binary[2], trees.path()]


KINDS = ["one root", "the same places", "several roots", "no path", "binary"]


@some(("kind", "classes"), product(KINDS, [2, 3, 12]), keep=8)
def test_points_are_those_of_the_plain_sums_of_votes(
    con: duckdb.DuckDBPyConnection, kind: str, classes: int
) -> None:
    """Whatever trees models share, and for values that the domain does not describe."""
    domain = public(classes)
    random = np.random.default_rng(classes)
    values = [[*names, "other", None] for names in (*VALUES.values(), domain.classes)]
    con.execute("CREATE TABLE t (a VARCHAR, b VARCHAR, d VARCHAR, c VARCHAR)")
    drawn = [[some[random.integers(len(some))] for some in values] for _ in range(300)]
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", drawn)
    table = con.execute("SELECT * FROM t").fetchall()
    known = [row for row in table if row[3] in domain.classes]
    assert 0 < len(known) < len(table)
    codes = np.array(
        [[a.code(v) for a, v in zip(domain.attributes, row[:3], strict=True)] for row in known]
    )
    labels = np.array([domain.classes.index(row[3]) for row in known])
    parts = models(kind, Trees(domain))
    votes = [sum(tree.votes[tree.find(codes)] for tree in model) for model in parts]
    expected = []
    for mixture in MIXTURES:
        mixed = sum(weight * each for weight, each in zip(mixture, votes, strict=True))
        expected.append(int(points(mixed // MIXTURE_PARTS, labels).sum()))
    engine = DuckDBEngine(con)
    coded = encode(engine, engine.table("t"), domain)
    assert coded.rate_mixtures(parts, MIXTURES, 1).tolist() == expected
    few = coded.with_same_codes(1, likely_rows=1, owned=True)
    assert few.rate_mixtures(parts, MIXTURES, 1).tolist() == expected
    few.drop()


@pytest.mark.parametrize(("likely_rows", "together"), [(0, True), (119, False), (120, True)])
def test_equal_rows_are_rated_together_if_there_are_many(
    con: duckdb.DuckDBPyConnection, likely_rows: int, together: bool
) -> None:
    """Many, if each of the 60 combinations of values and NULL has two rows on average."""
    con.execute("CREATE TABLE t AS SELECT 'x' AS a, 't' AS b, 'k' AS d, 'c0' AS c FROM range(7)")
    domain, run = public(2), list[str]()
    engine = DuckDBEngine(con, trace=run.append)
    coded = encode(engine, engine.table("t"), domain)
    rows = coded.with_same_codes(1, likely_rows=likely_rows, owned=True)
    tree = Trees(domain).path(0)
    (one,) = points(tree.votes[tree.find(np.zeros((1, 3), dtype=np.int64))], np.zeros(1, int))
    assert rows.rate_mixtures([[tree]], [(MIXTURE_PARTS,)], 1).tolist() == [7 * one]
    assert ("GROUP BY ALL" in run[-1]) == together
    rows.drop()


def test_votes_that_weights_do_not_leave_whole_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT 'x' AS a, 't' AS b, 'k' AS d, 'c0' AS c")
    domain, engine = public(2), DuckDBEngine(con)
    rows = encode(engine, engine.table("t"), domain)
    tree = Trees(domain).path(0)
    odd = replace(tree, votes=tree.votes + np.arange(tree.nodes)[:, None] * np.arange(2))
    with pytest.raises(AssertionError, match="whole"):
        rows.rate_mixtures([[odd]], [(1,)], 1)
