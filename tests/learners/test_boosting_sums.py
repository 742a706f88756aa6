"""The sums of gradients in boosting: in SQL, and how much a row changes them."""

from __future__ import annotations

import itertools

import duckdb
import numpy as np
import pytest
from boosted_rows import fill, public, voting
from steps import encode, seeded

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import Gradients
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.shared.exponentials import ONE
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners.boosting import WHOLE, gradient_scale, random_trees, sensitivity
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.plan import PlannedQuery
from dpforest_duckdb.tree import SCALE

MEASURES = (PURE_DP, GAUSSIAN_DP)


def changes(shares: np.ndarray, scale: Gradients) -> np.ndarray:
    """What a row of each class adds, `[row, class of the row, part]`, at `shares[row, class]`."""
    own = np.eye(shares.shape[1], dtype=np.int64)[None] * scale.whole
    gradient = own - shares[:, None]
    hessian = scale.hessian_numerator * shares * (scale.whole - shares)
    hessian //= scale.whole * scale.hessian_denominator
    return np.concatenate([gradient, np.broadcast_to(hessian[:, None], gradient.shape)], axis=2)


def size(added: np.ndarray, measure: Measure) -> np.ndarray:
    return (np.abs(added) if measure == PURE_DP else added**2).sum(axis=-1)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_no_row_of_two_classes_adds_more_than_the_sensitivity(measure: Measure) -> None:
    query = PlannedQuery("sweep", "m", (1,), measure=measure)
    scale, bound = gradient_scale(query, 2), sensitivity(query, 2, 1)
    second = np.arange(WHOLE + 1)
    added = changes(np.stack([WHOLE - second, second], axis=1), scale)[:, :, 1::2]
    assert size(added, measure).max() <= bound
    assert size(added, measure).max() > 0.999 * bound, "nothing smaller would do"
    between = (second > 0.3 * WHOLE) & (second < 0.5 * WHOLE)
    if measure == GAUSSIAN_DP:  # hessians count for as much as they may
        assert size(added[between], measure).max() > 0.999 * bound


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("classes", [3, 4, 18])
def test_no_row_of_several_classes_adds_more_than_the_sensitivity(
    measure: Measure, classes: int
) -> None:
    query = PlannedQuery("sweep", "m", (1,), measure=measure)
    scale, bound = gradient_scale(query, classes), sensitivity(query, classes, 1)
    if classes < 5:  # every share in parts of a 24th, and what is lost by rounding down
        parts = [p for p in itertools.product(range(25), repeat=classes) if 20 <= sum(p) <= 24]
        shares = np.array(parts) * WHOLE // 24
    else:
        drawn = np.random.default_rng(0).dirichlet([0.2] * classes, 20_000)
        alike = np.array([[0.0] + [1 / (classes - 1)] * (classes - 1)])
        shares = np.floor(np.concatenate([drawn, alike]) * WHOLE).astype(np.int64)
    largest = size(changes(shares, scale), measure).max()
    assert largest <= bound
    assert largest > (0.75 if measure == PURE_DP else 0.95) * bound
    assert sensitivity(query, classes, 3) == bound * (3 if measure == PURE_DP else 9)


def coded(con: duckdb.DuckDBPyConnection, domain: Domain) -> DuckDBRows:
    engine = DuckDBEngine(con)
    rows = encode(engine, engine.table("t"), domain)
    assert isinstance(rows, DuckDBRows)
    return rows


@pytest.mark.parametrize("classes", [2, 5, 20])
def test_sums_of_gradients_are_those_of_the_scores(
    con: duckdb.DuckDBPyConnection, classes: int
) -> None:
    fill(con, 500, classes)
    domain, random = public(classes), np.random.default_rng(classes)
    trees = [
        voting(t, random, classes)
        for t in random_trees(domain, 5, 3, np.ones(len(domain.attributes)), seeded(1).bits)
    ]
    assert all(tree.depth(domain.cells) == 3 for tree in trees)
    rows, scale = coded(con, domain), Gradients(WHOLE, 333, 100)
    rows.add_votes(trees[:2])
    rows.add_votes(trees[2:4])
    found = rows.sum_gradients([trees[4], trees[0]], scale)
    table = con.execute("SELECT a, n, b, c FROM t").fetchall()
    codes = np.array(
        [[a.code(v) for a, v in zip(domain.attributes, row[:3], strict=True)] for row in table]
    )
    labels = np.array([domain.classes.index(row[3]) for row in table])
    score = sum(tree.votes[tree.find(codes)] for tree in trees[:4])
    weight = np.floor(ONE * np.exp((score - score.max(axis=1, keepdims=True)) / SCALE) + 0.5)
    shares = (WHOLE * weight // weight.sum(axis=1, keepdims=True)).astype(np.int64)
    added = changes(shares, scale)[np.arange(len(codes)), labels]
    parts = added.reshape(len(codes), 2, classes).transpose(0, 2, 1).reshape(len(codes), -1)
    parts = parts[:, 2:] if classes == 2 else parts
    for tree, sums in zip((trees[4], trees[0]), found, strict=True):
        expected = np.zeros((tree.nodes, parts.shape[1]), dtype=np.int64)
        np.add.at(expected, tree.find(codes), parts)
        assert (sums == expected).all()
        assert np.abs(sums).sum() > WHOLE
    rows.drop()


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("classes", [2, 4])
def test_a_row_more_changes_the_sums_by_no_more_than_the_sensitivity(
    con: duckdb.DuckDBPyConnection, measure: Measure, classes: int
) -> None:
    fill(con, 40, classes)
    domain, random = public(classes), np.random.default_rng(3)
    trees = random_trees(domain, 3, 3, np.ones(len(domain.attributes)), seeded(2).bits)
    query = PlannedQuery("forest", "m", (1,), measure=measure)
    scale, bound, sure = gradient_scale(query, classes), sensitivity(query, classes, 1), 0.0
    votes = [voting(tree, random, classes) for tree in trees]

    def sums() -> list[np.ndarray]:
        rows = coded(con, domain)
        rows.add_votes(votes)
        found = rows.sum_gradients(trees, scale)
        rows.drop()
        return found

    before = sums()
    for row in itertools.product(("x", None), (3, None), ("u",), domain.classes):
        con.execute("INSERT INTO t VALUES (?, ?, ?, ?)", row)
        after = sums()
        for one, other in zip(before, after, strict=True):
            change = float(size((other - one).ravel(), measure))
            assert 0 < change <= bound
            sure = max(sure, change)
        before = after
    assert sure > bound / 4
