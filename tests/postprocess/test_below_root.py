"""The tables below roots before they are fitted: counts by level, totals, and their variances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.postprocess import below_root
from dpforest_duckdb.postprocess.below_root import ChildTables
from dpforest_duckdb.postprocess.noisy_shares import noisy_shares


@pytest.mark.parametrize(("level", "nodes", "summed"), [(0, 1, 6), (1, 2, 3), (2, 6, 1)])
def test_counts_above_the_last_root_are_sums_with_the_noise_of_all_of_them(
    level: int, nodes: int, summed: int
) -> None:
    table = below_root._Table(np.ones((2, 3, 4, 2)), variance=1.5, ordered=0)
    counts, variance = table.at(level, roots=2)
    assert counts.shape == (nodes, 4, 2)
    assert (counts == summed).all()
    assert variance == 1.5 * summed


def tables_below_a_root() -> ChildTables:
    attributes = (
        Attribute("root", "categorical", ("x", "y"), nullable=False),
        Attribute("coded", "categorical", ("a", "b"), nullable=False),
        Attribute("counted", "categorical", tuple("abcdef"), nullable=False),
    )
    random = np.random.default_rng(0)
    return ChildTables(
        domain=Domain(attributes, "c", ("p", "q")),
        roots=[0],
        attributes=[1, 2],
        totals=random.integers(0, 100, (2, 2)),
        counts=[random.integers(0, 100, (2, 2, 2)), random.integers(0, 100, (2, 6, 2))],
        noise=[0.1, 1.0],
        noise_of_totals=2.0,
    )


def test_totals_of_children_weigh_each_estimate_by_the_inverse_of_its_variance() -> None:
    """Tables of contrasts have no estimate of their own, and the sum of a table has the noise of
    all its counts.
    """
    tables = tables_below_a_root()
    totals, variance = below_root._totals(tables)
    assert variance == pytest.approx(1 / (1 / 4 + 1 / 6))
    assert totals == pytest.approx(
        (tables.totals / 4 + tables.counts[1].sum(axis=1) / 6) * variance
    )


def test_rows_of_no_child_get_the_shares_of_all_rows_whose_noise_is_that_of_all_children() -> None:
    tables = replace(tables_below_a_root(), noise=[20.0, 60.0], noise_of_totals=80.0)
    totals, variance = below_root._totals(tables)
    _, of_all = below_root._estimated(tables)
    assert of_all.starts[0] == pytest.approx(noisy_shares(totals.sum(axis=0), 2 * variance))


def test_rows_of_no_child_get_what_the_root_and_the_other_attributes_say_in_all_rows() -> None:
    """The tables of all rows are the sums of those of the children."""
    random = np.random.default_rng(4)
    counts = random.integers(500, 9_000, (2, 2, 2))
    tables = replace(
        tables_below_a_root(),
        attributes=[1],
        totals=counts.sum(axis=1),
        counts=[counts],
        noise=[0.1],
        noise_of_totals=0.1,
    )
    for model in below_root.models(tables):
        start, (of_root, of_attribute) = model.otherwise.start, model.otherwise.added
        ahead = start[..., 1] - start[..., 0]
        for added, table in ((of_root, counts.sum(axis=1)), (of_attribute, counts.sum(axis=0))):
            assert added.shape == (1, 2, 2)
            sign = np.sign(np.diff(added[0, :, 1] - added[0, :, 0]))
            assert sign == np.sign(np.diff(np.log(table[:, 1] / table[:, 0])))
        assert np.isfinite(ahead).all()
