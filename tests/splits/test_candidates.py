"""Candidate splits and the cells that their branches hold."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.splits.candidates import SplitType, candidates
from dpforest_duckdb.tree import branch_of


def domain(categories: int, *, ordered: bool = False) -> Domain:
    values = tuple(f"v{number}" for number in range(categories))
    names = ("code", "other")
    return Domain(
        tuple(Attribute(name, "categorical", values, ordered=ordered) for name in names),
        "target",
        ("no", "yes"),
    )


@pytest.mark.parametrize("split_type", ["binary", "multiway"])
def test_children_hold_the_cells_that_go_to_their_branch(split_type: SplitType) -> None:
    splits = candidates(domain(4, ordered=True), split_type)
    everything = np.ones((1, sum(splits.cells)), dtype=np.bool_)
    for candidate in range(len(splits)):
        attribute = splits.attribute[candidate]
        below = splits.descend(everything, np.array([candidate]))
        code = np.arange(splits.cells[attribute])
        taken = branch_of(splits.kind[candidate], splits.cell[candidate], code)
        held = below[:, splits.slices[attribute]]
        assert (held == (taken == np.arange(splits.arity[candidate])[:, None])).all()
        others = np.delete(below, splits.slices[attribute], axis=1)
        assert others.all()


def test_memory_does_not_grow_with_the_square_of_the_categories() -> None:
    """A table of all candidates and categories would have a hundred million entries."""
    splits = candidates(domain(10_000), "binary")
    everything = np.ones((1, sum(splits.cells)), dtype=np.bool_)
    tracemalloc.start()
    assert splits.arity.tolist() == [2] * len(splits)
    splits.descend(everything, np.array([7]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20


def test_thousands_of_groups_take_little_time() -> None:
    """A product of matrices would take time in proportion to groups squared times categories."""
    groups, size = 1500, 2
    values = tuple(f"v{number}" for number in range(groups * size))
    held = [values[number::groups] for number in range(groups)]
    taxonomy = tuple((f"g{number}", each) for number, each in enumerate(held))
    column = Attribute("a", "categorical", values, taxonomy=taxonomy, nullable=False)
    domain = Domain((column,), "y", ("no", "yes")).generalised()
    splits = candidates(domain, "mixed")
    every = np.ones((1, sum(domain.cells)), dtype=np.bool_)
    started = time.process_time()
    below = splits.descend(every, splits.of(1))
    assert time.process_time() - started < 1
    found = below[:groups, splits.slices[0]]
    assert [np.flatnonzero(row).tolist() for row in found[[0, 7]]] == [[0, groups], [7, groups + 7]]
