"""A greedy tree beside sums: what rows give a mixture, what is drawn, and what it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from boosted_rows import voting
from recorder import record
from row_points import points
from steps import encode, seeded
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.engine.base import MIXTURE_PARTS, POINTS
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners.boosting import random_trees
from dpforest_duckdb.learners.mixtures import RATED_ROWS, draw_mixture, mixed, one_in
from dpforest_duckdb.learners.tree_beside_sums import MIXTURES
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.splits import choose


def public(classes: int) -> Domain:
    attributes = (
        Attribute("a", "categorical", ("x", "y", "z"), nullable=False),
        Attribute("n", "numeric", lower=0, upper=100, nullable=False),
    )
    types = {"a": VARCHAR, "n": INTEGER, "c": VARCHAR}
    return Domain(attributes, "c", tuple(f"c{i}" for i in range(classes))).bind(types)


def points_of(
    con: duckdb.DuckDBPyConnection,
    rows: Sequence[tuple[str, int, str]],
    classes: int,
    odds: float = 1.0,
    one_in: int = 1,
    likely_rows: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The points of every mixture: by the statement, and worked out row by row `[row, mixture]`."""
    con.execute("CREATE OR REPLACE TABLE t (a VARCHAR, n INTEGER, c VARCHAR)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    domain, random = public(classes), np.random.default_rng(classes)
    trees = [
        voting(t, random, classes, odds)
        for t in random_trees(domain, 3, 2, np.ones(len(domain.attributes)), seeded(1).bits)
    ]
    engine = DuckDBEngine(con)
    coded = encode(engine, engine.table("t"), domain)
    rows_at_roots = coded.with_same_codes(1, likely_rows=likely_rows, owned=True)
    found = rows_at_roots.rate_mixtures([trees[:2], trees[2:]], MIXTURES, one_in)
    rows_at_roots.drop()
    codes = np.array(
        [[a.code(v) for a, v in zip(domain.attributes, row[:2], strict=True)] for row in rows]
    )
    labels = np.array([domain.classes.index(row[2]) for row in rows])
    scores = sum(tree.votes[tree.find(codes)] for tree in trees[:2])
    alone = trees[2].votes[trees[2].find(codes)]
    odds = [(m[0] * scores + m[1] * alone) // MIXTURE_PARTS for m in MIXTURES]
    return found, np.stack([points(each, labels) for each in odds], axis=1)


def some_rows(rows: int, classes: int) -> list[tuple[str, int, str]]:
    random = np.random.default_rng(rows)
    return [
        (str(random.choice(["x", "y", "z"])), int(random.integers(0, 101)), f"c{label}")
        for label in random.integers(0, classes, rows)
    ]


@pytest.mark.parametrize("classes", [2, 5])
def test_points_are_those_of_the_log_odds_that_are_released(
    con: duckdb.DuckDBPyConnection, classes: int
) -> None:
    found, each = points_of(con, some_rows(300, classes), classes)
    assert (found == each.sum(axis=0)).all()
    assert len(set(found.tolist())) == len(MIXTURES)


@pytest.mark.parametrize(
    ("rows", "cost", "rows_per_unit", "expected"),
    [
        (10**3, NANO, 1, 1),
        (2**20, NANO, 1, 2**20 // RATED_ROWS),
        (2**20, NANO // 100, 1, 10),  # 2^10 times a noise of 100 rows
        (2**20, NANO // 100, 3, 3),
    ],
)
def test_so_many_rows_give_points_as_the_noise_of_the_draw_needs(
    rows: int, cost: int, rows_per_unit: int, expected: int
) -> None:
    """Of few different rows all do, because equal ones are rated together."""
    many = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=100) for i in range(8))
    types = {**{attribute.name: INTEGER for attribute in many}, "c": VARCHAR}
    for attributes, seen in ((many, expected), (many[:1], 1)):
        domain = Domain(attributes, "c", ("p", "q")).bind(types)
        request = find("tree-beside-sums").request(domain, NANO, rows_per_unit=rows_per_unit)
        assert one_in(replace(request, rows=rows), cost) == seen


@some(
    ("likely_rows", "odds", "one_in", "classes"),
    [
        (likely_rows, *rated, classes)
        for likely_rows, rated, classes in product((0, 1), [(0.1, 1), (50.0, 1), (0.1, 2)], (5, 2))
    ],
    keep=5,
)
def test_a_row_more_gives_every_mixture_0_to_its_most(
    con: duckdb.DuckDBPyConnection, classes: int, odds: float, one_in: int, likely_rows: int
) -> None:
    """Whether equal rows are rated together, or each alone."""
    rows = some_rows(20, classes)
    before, _ = points_of(con, rows, classes, odds, one_in, likely_rows)
    rated = 0
    for added in [*some_rows(6, classes), rows[0]]:
        after, _ = points_of(con, [added, *rows], classes, odds, one_in, likely_rows)
        assert (after >= before).all()
        assert (after - before <= POINTS).all()
        rated += (after > before).any()
    if odds < 1:  # no row is so far off that it gives no mixture any point
        assert rated == 7 if one_in == 1 else 0 < rated < 7


def test_a_table_without_rows_gives_no_points(con: duckdb.DuckDBPyConnection) -> None:
    domain = public(3)
    con.execute("CREATE TABLE t (a VARCHAR, n INTEGER, c VARCHAR)")
    engine = DuckDBEngine(con)
    coded = encode(engine, engine.table("t"), domain)
    (tree,) = random_trees(domain, 1, 2, np.ones(len(domain.attributes)), Randomness.secure().bits)
    assert coded.rate_mixtures([[tree], [tree]], MIXTURES, 1).tolist() == [0] * len(MIXTURES)


@pytest.mark.parametrize("k", [1, 4])
def test_draws_have_the_sensitivity_of_their_utilities(
    monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    """A privacy unit of k rows raises points by up to k times the most."""
    given = record(monkeypatch, choose)
    context = SimpleNamespace(
        request=find("log-odds").request(public(2), NANO, rows_per_unit=k),
        accountant=SimpleNamespace(spend=lambda purpose: 7),
        randomness=Randomness.secure(),
        observe=lambda event: None,
    )
    rows = SimpleNamespace(rate_mixtures=lambda *_: np.array([3, 5]) * POINTS)
    draw_mixture([], [(1, 0), (0, 1)], cast(Any, rows), cast(Any, context))
    assert [(*call.price, call.monotone) for call in given] == [(7, k * POINTS, True)]


def test_the_better_model_is_drawn_where_the_budget_is_large() -> None:
    bits, points = Randomness.secure().bits, np.array([10, 30, 29]) * POINTS
    drawn = {choose.draw_best(points, 100 * NANO, POINTS, bits) for _ in range(20)}
    assert drawn == {1}


def test_a_mixture_has_weighted_votes_and_no_tree_of_weight_0() -> None:
    drawn = random_trees(public(3), 3, 2, np.ones(2), Randomness.secure().bits)
    first, second, third = (
        replace(tree, votes=np.full((tree.nodes, 3), 1_000 * number))
        for number, tree in enumerate(drawn, 1)
    )
    votes = [tree.votes[0].tolist() for tree in mixed([[first, second], [third]], (10, 5))]
    assert votes == [[500] * 3, [1_000] * 3, [750] * 3]
    alone = mixed([[first, second], [third]], (0, MIXTURE_PARTS))
    assert [tree.votes[0].tolist() for tree in alone] == [[3_000] * 3]


@pytest.mark.parametrize("rows", [0, 50, 3000, 10**6])
def test_the_whole_budget_is_planned_and_the_rest_is_rounding(rows: int) -> None:
    recipe = find("tree-beside-sums")
    request = replace(recipe.request(public(3), NANO), rows=rows)
    spent = recipe.plan(request).epsilon
    assert NANO * 0.999 < spent <= NANO


@pytest.mark.parametrize(("rows", "cut"), [(1_400, False), (1_500, True)])  # signals 286 and 306
def test_numbers_of_large_tables_are_cut_at_private_medians(rows: int, cut: bool) -> None:
    """They cost 14 % of what the count leaves, in five turns; other tables have equal bins."""
    recipe = find("tree-beside-sums")
    plan = recipe.plan(replace(recipe.request(public(3), NANO), rows=rows))
    bins, counts = plan.query("bins"), sum(q.total for q in plan.queries if q.purpose in ROW_COUNTS)
    assert (bins is not None) == cut
    if bins is not None:
        assert len(bins.by_depth) == 5
        assert bins.total == pytest.approx(0.14 * (NANO - counts))


@pytest.mark.parametrize(("rows", "bins"), [(3_000, 32), (30_000, 0)])
def test_bins_are_equal_where_they_are_not_at_medians(rows: int, bins: int) -> None:
    recipe, domain = find("tree-beside-sums"), public(3)
    found = adaptation.adapted(recipe, recipe.request(domain, NANO // 4), np.full(3, rows // 3))
    equal = domain.recut(bins) if bins else domain
    assert found.request.domain == equal
    assert (found.plan.query("bins") is None) == bool(bins)


def test_rare_classes_change_the_parts_of_the_budget_but_not_the_depth() -> None:
    recipe = find("tree-beside-sums")
    attributes = tuple(
        Attribute(f"a{i}", "numeric", lower=0, upper=100, nullable=False) for i in range(10)
    )
    types = {f"a{i}": INTEGER for i in range(10)} | {"c": VARCHAR}
    request = recipe.request(Domain(attributes, "c", ("x", "y", "z")).bind(types), NANO)
    depths, parts = set(), list[float]()
    for counts in ([1000, 1000, 1000], [2400, 450, 150]):
        found = adaptation.adapted(recipe, request, np.array(counts))
        tree = [q.total for q in found.plan.queries if q.purpose in ("split", "leaf")]
        depths.add(found.request.depth)
        parts.append(sum(tree) / NANO)
    assert depths == {4}
    assert parts[0] > parts[1] + 0.05


def test_a_value_range_with_half_of_the_rows_gets_many_bins(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """Half of the rows lie in a thousandth of the bounds, and classes are quarters of it."""
    con.execute(
        "CREATE TABLE t AS SELECT CASE WHEN i % 2 = 0 THEN 1000 * u ELSE 1e6 * u END AS x, "
        "'c' || CASE WHEN i % 2 = 0 THEN floor(4 * u)::INTEGER ELSE i // 2 % 4 END AS c "
        "FROM (SELECT i, hash(i) % 100000 / 1e5 AS u FROM range(40000) AS r(i))"
    )
    attributes = (Attribute("x", "numeric", lower=0, upper=1e6, nullable=False),)
    domain = Domain(attributes, "c", tuple(f"c{i}" for i in range(4)))
    forest = fit(con, "t", domain=domain, epsilon=1, recipe="tree-beside-sums")
    quarters = [{"x": x} for x in (100, 400, 600, 900)]
    assert forest.votes(quarters).argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_auto_grows_a_tree_beside_sums_of_several_classes_of_numbers(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """Four classes by two numbers together: neither number predicts a class alone."""
    con.execute(
        "CREATE TABLE t AS SELECT x, y, 'c' || (2 * CAST(x > 50 AS INTEGER) + "
        "CAST((x > 50) != (y > 50) AS INTEGER)) AS c FROM (SELECT "
        "CAST(hash(i) % 101 AS INTEGER) AS x, CAST(hash(i + 100000) % 101 AS INTEGER) AS y "
        "FROM range(8000) AS r(i))"
    )
    attributes = [Attribute(name, "numeric", lower=0, upper=100, nullable=False) for name in "xy"]
    domain = Domain(tuple(attributes), "c", tuple(f"c{i}" for i in range(4)))
    forest = fit(con, "t", domain=domain, epsilon=1)
    assert any(line.startswith("mixture: permute-and-flip") for line in forest.guarantee.plan)
    corners = [{"x": x, "y": y} for x in (20, 80) for y in (20, 80)]
    assert forest.votes(corners).argmax(axis=1).tolist() == [0, 1, 3, 2]
