"""Leaves are stored with the votes of the trees before them, and sums of gradients read them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import duckdb
import numpy as np
from steps import encode
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.engine.base import CodedRows, Gradients
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners.boosting import random_trees
from dpforest_duckdb.learners.growth import one_split
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.tree import THRESHOLD, Tree


# with "other" 255 or 256 cells: the limit of UTINYINT
@some(("classes", "many"), product([2, 3, 40], [254, 255]), keep=3)
def test_sums_are_the_same_whether_leaves_are_stored_or_not(classes: int, many: int) -> None:
    names = {"many": tuple(f"v{n}" for n in range(many)), "some": tuple("abcdefgh")}
    attributes = tuple(Attribute(n, "categorical", v, nullable=False) for n, v in names.items())
    labels = tuple(f"k{n}" for n in range(classes))
    domain = Domain(attributes, "y", labels).bind(dict.fromkeys([*names, "y"], VARCHAR))
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE t AS SELECT 'v' || i % {many + 1} AS many, chr((97 + i % 9)::INT) AS some, "
        f"'k' || (hash(i) % {classes}) AS y FROM range(1000) AS r(i)"
    )
    shown = list[str]()
    engine = DuckDBEngine(con, shown.append)

    def coded() -> CodedRows:
        return encode(engine, engine.table("t"), domain)

    random = np.random.default_rng(1)

    def voting(tree: Tree) -> Tree:
        votes = np.zeros_like(tree.votes)
        votes[tree.leaves] = 1000 * random.integers(-900, 900, (len(tree.leaves), classes))
        return replace(tree, votes=votes)

    a, b, c = map(voting, random_trees(domain, 3, 4, np.ones(len(domain.attributes)), SecureBits()))
    sweep, other, scale = *(voting(one_split(domain, n)) for n in (0, 1)), Gradients(2**16, 2, 1)
    turns = [([a, b], [sweep]), ([c], [a, sweep]), ([sweep], [c, b]), ([a], []), ([a], [c])]
    turns += [([b, c], [b]), ([c], [sweep, other]), ([other], [])]  # the last adds in its statement
    equal = voting(random_trees(domain, 1, 1, np.array([0.0, 1.0]), SecureBits())[0])
    for part in ("attribute", "cell", "kind"):  # all else is the same, but the leaves are not
        turns += [([equal], [_with_another(equal, part)]), ([b], [])]
    rows, voted = coded(), list[Tree]()
    for summed, added in turns:
        fresh = coded()
        fresh.add_votes(voted)
        found = rows.sum_gradients(summed, scale)
        for tree, sums in zip(summed, found, strict=True):
            assert sums.tolist() == fresh.sum_gradients([tree], scale)[0].tolist()
        rows.add_votes(added)
        voted = [*voted, *added]
    assert any("FROM (\n    WITH" in text for text in shown), "some votes are added on the way"
    assert not any("(--" in text for text in shown), "a header is at the beginning alone"


def _with_another(tree: Tree, part: str) -> Tree:
    """A tree of one split, with another attribute, cell, or kind of split."""
    changed = getattr(tree, part).copy()
    changed[0] = {"attribute": 0, "cell": (changed[0] + 1) % 8, "kind": THRESHOLD}[part]
    return replace(tree, **{part: changed})
