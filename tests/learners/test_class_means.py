"""Forests of class means: positions and windows, votes, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from mixed_domains import DOMAIN, LABELS, numbers
from recorder import NoNoise
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.attribute import MAX_CATEGORIES
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners import class_means
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.discriminant import discriminant
from dpforest_duckdb.postprocess.noisy_shares import counted_shares, noisy_shares
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.recipes import find
from dpforest_duckdb.scoring.links import SOFTMAX
from dpforest_duckdb.scoring.score_sql import score_sql, share_names
from dpforest_duckdb.splits.choose import draw_best
from dpforest_duckdb.splits.positions import REACH, positions, window_utilities, windows
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.tree import SCALE


@pytest.mark.parametrize("cells", [9, 33, 251])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_window_inside_wide_bounds_covers_most_rows(cells: int, share: float) -> None:
    """And little else: at most twice as many cells as the rows are in, and one."""
    within = max(1, int(share * cells))
    for first in (0, (cells - within) // 2, cells - within):
        counts = np.zeros(cells, dtype=np.int64)
        counts[first : first + within] = 2_000 // within
        start, end = windows(cells)
        drawn = draw_best(window_utilities(counts, 2_000), NANO, 1, SecureBits())
        window = slice(start[drawn], end[drawn])
        assert counts[window].sum() >= 0.7 * counts.sum()
        assert end[drawn] - start[drawn] <= 2 * within + 1


def test_a_window_is_worth_its_rows_up_to_a_part_of_all_less_a_handicap_for_its_length() -> None:
    counts = np.array([0, 50, 45, 5, 0, 0, 0, 0, 0])
    places = zip(*(ends.tolist() for ends in windows(9)), strict=True)
    worth = dict(zip(places, window_utilities(counts, 100).tolist(), strict=True))
    assert worth[0, 2] == 50 - 6, "0.06 of 100 rows for a length of two cells"
    assert worth[1, 3] == 90 - 6, "0.9 of 100 rows are enough"
    assert worth[0, 9] == 90 - 19, "log2(9) times as much for all cells"


@pytest.mark.parametrize(("rows", "second"), [(500, "squares"), (10**6, "products")])
def test_moments_without_noise_are_those_of_the_positions(rows: int, second: str) -> None:
    """Sums by class, and means of squares or products over all rows; noise is that of each mean."""
    random, n, attributes = np.random.default_rng(0), 400, DOMAIN.attributes
    codes = np.stack([random.integers(0, a.cells, n) for a in attributes], axis=1)
    labels = random.integers(0, len(LABELS), n)
    found = {number: positions(attribute) for number, attribute in enumerate(attributes)}
    private = [np.zeros((a.cells, len(LABELS)), dtype=np.int64) for a in attributes]
    for number, table in enumerate(private):
        np.add.at(table, (codes[:, number], labels), 1)
    places = np.concatenate([each.table[codes[:, a]] for a, each in found.items()], axis=1)
    recipe = find("class-means")
    request = replace(recipe.request(DOMAIN, NANO), rows=rows)
    plan = recipe.plan(request)
    context = SimpleNamespace(
        request=replace(request, histogram=tuple(np.bincount(labels).tolist())),
        accountant=Accountant(plan, NANO, 0),
        randomness=SimpleNamespace(noise=NoNoise()),
    )
    coded = SimpleNamespace(sum_products=lambda found: places.T @ places)
    moments = class_means._moments(cast(Any, coded), private, found, cast(Any, context))
    parts = places / REACH
    of_classes = [parts[labels == label].sum(axis=0) for label in range(len(LABELS))]
    assert moments.sums == pytest.approx(np.stack(of_classes))
    assert moments.rows == pytest.approx(n * counted_shares(context.request, plan))
    assert moments.squares == pytest.approx((parts**2).mean(axis=0))
    query = plan.query(second)
    assert query is not None
    deviation = recipe.learner.deviation(query, request)
    assert deviation is not None
    # what is noised is 2x² - 1, and products as they are
    assert moments.square_noise == pytest.approx((deviation / n / 2) ** 2)
    if second == "squares":
        assert moments.products is None
    else:
        assert moments.products == pytest.approx(parts.T @ parts / n)
        assert moments.product_noise == pytest.approx((deviation / n) ** 2)


@pytest.mark.parametrize("histogram", [(-40, -300, -9), (0, 0, 0), (5000, -70, 3)])
def test_moments_of_noise_alone_give_finite_log_odds(histogram: tuple[int, ...]) -> None:
    """Noise may leave classes, or the whole table, without rows."""
    recipe, attributes = find("class-means"), DOMAIN.attributes
    request = replace(recipe.request(DOMAIN, NANO // 100), rows=1, histogram=histogram)
    context = SimpleNamespace(
        request=request,
        accountant=Accountant(recipe.plan(request), NANO, 0),
        randomness=Randomness.secure(),
    )
    found = {number: positions(attribute) for number, attribute in enumerate(attributes)}
    private = [np.zeros((a.cells, len(LABELS)), dtype=np.int64) for a in attributes]
    moments = class_means._moments(cast(Any, None), private, found, cast(Any, context))
    assert (moments.rows > 0).all()
    weights, constants = discriminant(moments)
    assert np.isfinite(weights).all()
    assert np.isfinite(constants).all()


def test_positions_ascend_in_the_window_and_are_0_without_a_value() -> None:
    number, grade, *others = DOMAIN.attributes
    found = positions(number, (4, 19)).table[:, 0]
    assert (found[:5] == -REACH).all()
    assert (found[18:-1] == REACH).all()
    assert len(set(np.diff(found[4:19]).tolist())) <= 2, "equal steps, but for rounding"
    assert found[number.null] == 0
    assert not len(positions(number, (7, 8)).values), "one cell has no order"
    assert positions(grade).table[:, 0].tolist() == [-100, -50, 0, 50, 100, 0, 0]
    for attribute in others:
        table = positions(attribute).table
        apart = table[list(attribute.described)]
        assert len(np.unique(apart, axis=0)) == len(attribute.described)
        assert not table[attribute.other].any()


def test_positions_of_many_categories_are_kept_without_zeros() -> None:
    """With zeros, nine attributes like this one would take 7 GB."""
    many = Attribute("city", "categorical", tuple(map(str, range(MAX_CATEGORIES))))
    found = positions(many)
    assert found.shape == (many.cells, len(many.described))
    assert len(found.values) == len(many.described)
    assert found.sums(np.ones((many.cells, 2), dtype=np.int64)).tolist() == [
        [REACH, REACH] for _ in many.described
    ]


@some(
    ("values", "label", "rows", "classes"),
    [
        pytest.param("7, 7, 7, 'a'", "i % 3", 500, 3, id="one value everywhere"),
        pytest.param("i, i, i, 'a'", "i", 0, 3, id="no rows"),
        pytest.param("i % 90, i % 7, i % 31, 'abcdef'[i % 6 + 1]", "1", 500, 3, id="one class"),
        pytest.param("NULL, NULL, NULL, NULL", "i % 3", 500, 3, id="NULL everywhere"),
        pytest.param("i % 97, i % 7, i % 2 * 40 + i % 31, 'b'", "i % 2", 900, 2, id="two classes"),
        pytest.param("i % 30 * 3, i % 5, i % 6, 'c'", "i % 30", 900, 30, id="30 classes"),
    ],
    keep=2,
)
def test_every_table_gets_a_forest_that_scores_in_sql_as_in_memory(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path, values: str,
    label: str, rows: int, classes: int,
) -> None:  # fmt: skip
    con.execute("CREATE TABLE t (x0 DOUBLE, x1 DOUBLE, x2 INTEGER, text VARCHAR, c VARCHAR)")
    con.execute(f"INSERT INTO t SELECT {values}, 'c' || ({label}) FROM range({rows}) AS r(i)")
    domain = numbers(classes)
    forest = fit(con, "t", domain=domain, recipe="class-means", epsilon=1)
    assert forest.link == SOFTMAX
    assert len(forest.trees) == 5
    for tree in forest.trees:
        assert (abs(tree.votes) < 10**9).all()
    con.execute("CREATE TABLE seen AS FROM t LIMIT 60")
    con.execute("INSERT INTO seen VALUES (NULL, -5, 10**6, 'else', NULL), ('nan', 1, 2, 'a', 'c0')")
    engine = DuckDBEngine(con)
    cursor = con.execute(score_sql(forest, engine.scored("seen")))
    head = [part[0] for part in cursor.description]
    found = [dict(zip(head, row, strict=True)) for row in cursor.fetchall()]
    votes = forest.votes(found)
    assert [row["prediction"] for row in found] == [f"c{i}" for i in votes.argmax(axis=1)]
    shares = np.array([[row[name] for name in share_names(forest, "")] for row in found])
    assert np.isfinite(shares).all()
    assert shares == pytest.approx(forest.probabilities(votes))
    assert evaluate(con, forest, "seen", ledger=tmp_path / "ledger").rows == min(rows, 60) + 1


def test_attributes_of_one_value_each_leave_the_frequencies_of_the_classes(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute("CREATE TABLE t AS SELECT 'a' AS x, 'c' || (i % 3) AS c FROM range(90) AS r(i)")
    only = Attribute("x", "categorical", ("a",), nullable=False)
    forest = fit(con, "t", domain=Domain((only,), "c", ("c0", "c1", "c2")), recipe="class-means")
    (tree,) = forest.trees
    assert tree.counts is not None
    assert tree.noise is not None
    shares = noisy_shares(tree.counts[0].astype(np.float64), float(tree.noise[0]) ** 2)
    votes = tree.votes[0] / SCALE
    assert votes - votes[0] == pytest.approx(np.log(shares / shares[0]), abs=0.002)


@pytest.mark.parametrize(("rows", "query", "part"), [(800, "squares", 0.7), (9_000, "products", 1)])
def test_log_odds_without_products_or_a_rating_are_made_less_sure(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], rows: int, query: str, part: float
) -> None:
    """All of them: eight copies of a number, and three classes of which one has most rows."""
    copies = ", ".join(f"x AS x{number}" for number in range(8))
    con.execute(
        f"CREATE TABLE t AS SELECT {copies}, CASE WHEN i % 20 < 16 THEN 'c0' WHEN i % 20 < 19 "
        "THEN 'c1' ELSE 'c2' END AS c FROM (SELECT i, (hash(i) % 1000)::DOUBLE AS x "
        f"FROM range({rows}) AS r(i))"
    )
    numbers = (Attribute(f"x{n}", "numeric", lower=0, upper=999, nullable=False) for n in range(8))
    domain = Domain(tuple(numbers), "c", ("c0", "c1", "c2"))
    forest = fit(con, "t", domain=domain, recipe="class-means")
    asked = {line.split(":")[0] for line in forest.guarantee.plan}
    assert query in asked
    assert "mixture" not in asked
    first, second, _ = forest.trees[0].votes[0] / SCALE
    assert first - second == pytest.approx(part * math.log(16 / 3), abs=0.3)
