"""The discriminant from noisy sums is that of scikit-learn without noise, and careful with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
from mixed_domains import LABELS
from steps import encode, seeded

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners import class_means
from dpforest_duckdb.postprocess.discriminant import Moments, discriminant, noise_of_log_odds
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.progress import unobserved
from dpforest_duckdb.recipes import find
from dpforest_duckdb.request import TrainingContext
from dpforest_duckdb.tree import SCALE


def moments(
    x: np.ndarray, labels: np.ndarray, *, products: bool = False, noise: float = 0.0, seed: int = 0
) -> Moments:
    """Of rows, with noise of that deviation in the sums."""
    classes, random = labels.max() + 1, np.random.default_rng(seed)
    sums = np.stack([x[labels == c].sum(axis=0) for c in range(classes)])
    return Moments(
        np.bincount(labels).astype(float),
        sums + noise * random.normal(size=sums.shape),
        np.full(x.shape[1], noise**2),
        (x**2).mean(axis=0),
        0.0,
        x.T @ x / len(x) if products else None,
    )


@pytest.fixture(scope="module")
def irises() -> tuple[np.ndarray, np.ndarray]:
    """Fifty rows of each of three classes: one far from the others, which overlap; correlated."""
    random = np.random.default_rng(4)
    centre = np.array([[-0.7, 0.4, -0.8, -0.7], [0.1, -0.3, 0.2, 0.1], [0.6, 0.0, 0.7, 0.8]])
    shared, single = random.normal(size=(150, 1)), random.normal(size=(150, 4))
    labels = np.repeat(np.arange(3), 50)
    return centre[labels] + 0.3 * shared * [1, 0.6, 0.9, 0.4] + 0.4 * single, labels


def fisher(x: np.ndarray, labels: np.ndarray) -> Any:
    """scikit-learn's discriminant."""
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    return analysis.LinearDiscriminantAnalysis(solver="lsqr").fit(x, labels)


def test_without_noise_it_is_the_discriminant_of_scikit_learn(
    irises: tuple[np.ndarray, np.ndarray],
) -> None:
    """Of fewer rows of the first class too."""
    for x, labels in (irises, (irises[0][35:], irises[1][35:])):
        weights, constants = discriminant(moments(x, labels, products=True))
        theirs = fisher(x, labels)
        assert pytest.approx(theirs.coef_, rel=1e-4) == weights.T
        shares = np.log(np.bincount(labels) / len(labels))
        assert constants.sum(axis=0) + shares == pytest.approx(theirs.intercept_, rel=1e-4)
        own = (x @ weights + constants.sum(axis=0) + shares).argmax(axis=1)
        assert (own == theirs.predict(x)).all()


def test_without_products_it_is_the_sum_of_discriminants_of_one_attribute(
    irises: tuple[np.ndarray, np.ndarray],
) -> None:
    x, labels = irises
    weights, constants = discriminant(moments(x, labels))
    shares = np.log(np.bincount(labels) / len(labels))
    for column in range(x.shape[1]):
        theirs = fisher(x[:, [column]], labels)
        assert weights[column] == pytest.approx(theirs.coef_[:, 0], rel=1e-4)
        assert constants[column] + shares == pytest.approx(theirs.intercept_, rel=1e-4)


@pytest.mark.parametrize("products", [False, True])
def test_the_stated_noise_of_log_odds_is_the_noise_that_is_there(
    irises: tuple[np.ndarray, np.ndarray], products: bool
) -> None:
    """In the middle and at both ends of a dimension, but for what moves all classes alike."""
    x, labels = np.concatenate([irises[0]] * 20), np.concatenate([irises[1]] * 20)
    places, added, stated = [np.array([-1.0, 0.2, 1.0])] * 4, [], []
    for seed in range(200):
        given = moments(x, labels, noise=12, seed=seed, products=products)
        weights, constants = discriminant(given)
        log_odds = places[2][:, None] * weights[2] + constants[2]
        added.append(log_odds - log_odds.mean(axis=1, keepdims=True))
        if seed < 10:
            stated.append(noise_of_log_odds(given, places)[2])
    there, mean = np.std(added, axis=0), np.mean(stated, axis=0)
    assert (there / mean).min() > 0.7
    assert (there / mean).max() < 1.4


def test_much_noise_makes_all_classes_alike(irises: tuple[np.ndarray, np.ndarray]) -> None:
    """Their means shrink to the mean of all rows: no attribute tells them apart any more."""
    x, labels = irises
    weights, _ = discriminant(moments(x, labels))
    clear, left, odds = np.ptp(weights, axis=1).mean(), [], []
    for seed in range(20):
        weights, constants = discriminant(moments(x, labels, noise=10_000, seed=seed))
        left.append(np.ptp(weights, axis=1).mean())
        odds.append(np.ptp(x @ weights + constants.sum(axis=0), axis=1).mean())
    assert np.mean(left) < 0.01 * clear
    assert np.mean(odds) < 2


def test_a_class_of_one_noisy_row_does_not_dominate(irises: tuple[np.ndarray, np.ndarray]) -> None:
    """Its mean is noise: it is predicted for few rows, and most predictions stay correct."""
    x, labels = np.concatenate([irises[0][51:]] * 9), np.concatenate([irises[1][51:] - 1] * 9)
    labels[0] = 2
    right, rare = [], []
    for seed in range(30):
        given = moments(x, labels, noise=20, seed=seed)
        weights, constants = discriminant(given)
        odds = x @ weights + constants.sum(axis=0) + np.log(given.rows / given.rows.sum())
        right.append((odds.argmax(axis=1) == labels).mean())
        rare.append((odds.argmax(axis=1) == 2).mean())
    assert np.mean(rare) < 0.02
    assert np.mean(right) > 0.85


def numeric(name: str, bins: int) -> Attribute:
    """A number between 0 and `bins`, in bins of width 1."""
    edges = tuple(range(1, bins))
    return Attribute(name, "numeric", lower=0, upper=bins, edges=edges, nullable=False)


@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
def test_boosting_starts_at_the_discriminant_of_the_attributes_in_order(
    con: duckdb.DuckDBPyConnection, delta: int
) -> None:
    """That of scikit-learn on positions from -1 to 1, whatever attributes stand between them."""
    attributes = (
        numeric("x", 8),
        Attribute("text", "categorical", ("a", "b", "c"), nullable=False),
        numeric("z", 2),
        numeric("y", 4),
        Attribute("grade", "categorical", ("a", "b", "c"), ordered=True, nullable=False),
    )
    kinds = {"x": DOUBLE, "text": VARCHAR, "z": DOUBLE, "y": DOUBLE, "grade": VARCHAR}
    domain = Domain(attributes, "label", LABELS).bind({**kinds, "label": VARCHAR})
    con.execute(
        "CREATE TABLE t AS SELECT 'abc'[i % 3 + 1] AS text, x + .5 AS x, i % 2 + .5 AS z,"
        " (x // 3 + i % 7 // 5) % 4 + .5 AS y, 'abc'[(x + i % 5) % 3 + 1] AS grade, "
        "'pqr'[(x + i % 11) // 6 + 1] AS label "
        "FROM (SELECT i, (i * i % 61 + i % 13) % 8 AS x FROM range(4_000) r(i))"
    )
    engine, boosted = DuckDBEngine(con), find("boosted")
    rows = encode(engine, engine.table("t"), domain)
    private = [table[0] for table in rows.count_classes(0, 1)]
    sure = 10**5 * NANO
    request = replace(
        replace(boosted.request(domain, sure, delta=delta), rows=4_000),
        histogram=tuple(private[0].sum(axis=0).tolist()),
    )
    account = Accountant(boosted.plan(request), sure, delta)
    context = TrainingContext(boosted, request, account, seeded(1), unobserved)
    started = class_means.start_at_means(rows, context)
    assert list(started) == [0, 2, 3, 4]
    codes = con.execute(
        "SELECT x::INT / 3.5 - 1, z * 2 - 2, (y - .5) / 1.5 - 1, ascii(grade) - 98, label FROM "
        "(SELECT * REPLACE (x - .5 AS x) FROM t)"
    ).fetchall()
    x, labels = np.array([row[:4] for row in codes], dtype=float), np.array([r[4] for r in codes])
    theirs = fisher(x, labels)
    for dimension, tree in enumerate(started.values()):
        votes = tree.votes[tree.leaves] / SCALE
        slope = (votes[(8, 2, 4, 3)[dimension] - 1] - votes[0]) / 2
        expected = theirs.coef_[:, dimension]
        assert slope - slope.mean() == pytest.approx(expected - expected.mean(), abs=0.01)


def test_noise_far_above_the_rows_leaves_log_odds_that_votes_can_hold() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        noise = 10.0**seed
        moments = Moments(
            rows=np.ones(3),
            sums=random.normal(size=(3, 9)) * noise,
            sum_noise=np.full(9, noise**2),
            squares=random.normal(size=9) * noise,
            square_noise=noise**2,
        )
        weights, constants = discriminant(moments)
        assert np.abs(np.concatenate([weights, constants])).max() < 10**4
