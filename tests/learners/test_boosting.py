"""Boosting: sensitivities, sums in SQL, plans, and forests from scores kept in the database."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import record
from steps import counted, encode
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.engine.base import Gradients
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.engine.exponentials import ONE
from dpforest_duckdb.engine.rows import DuckDBRows
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.learners import boosting
from dpforest_duckdb.learners import private_bins as medians
from dpforest_duckdb.learners.boosting import WHOLE, gradient_scale, random_trees, sensitivity
from dpforest_duckdb.learners.private_bins import (
    cut_at_medians,
    domain_cut_at_medians,
    on_the_grid,
    to_be_cut,
)
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.newton_steps import LEAST_HESSIAN, STEP_WIDTHS, StepWidths, steps
from dpforest_duckdb.postprocess.voting import integer_votes, of_two
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.gaussian_dp import drawn_cost
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.plan import ROW_COUNTS, PlannedQuery
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.selection import EXPONENTIAL, Mechanism
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto import AUTO, pick
from dpforest_duckdb.recipes.ours.auto_rules import PURE, signal
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.positions import REACH
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run
from dpforest_duckdb.tree import LEAF, SCALE, Tree

DELTA = ATTO // 10**5
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


def public(classes: int = 2) -> Domain:
    attributes = (
        Attribute("a", "categorical", ("x", "y", "z"), nullable=False),
        Attribute("n", "numeric", lower=0, upper=100),
        Attribute("b", "categorical", ("t", "u"), ordered=True),
    )
    types = {"a": VARCHAR, "n": INTEGER, "b": VARCHAR, "c": VARCHAR}
    return Domain(attributes, "c", tuple(f"c{i}" for i in range(classes))).bind(types)


def fill(con: duckdb.DuckDBPyConnection, rows: int, classes: int) -> None:
    con.execute("CREATE OR REPLACE TABLE t (a VARCHAR, n INTEGER, b VARCHAR, c VARCHAR)")
    con.execute(
        "INSERT INTO t SELECT ['x', 'y', 'z', 'q'][1 + i % 4], CASE WHEN i % 7 > 0 THEN i % 130"
        " END, ['t', 'u', NULL][1 + i % 3], 'c' || ((i * i + i // 5) % ?) FROM range(?) AS r(i)",
        [classes, rows],
    )


def coded(con: duckdb.DuckDBPyConnection, domain: Domain) -> DuckDBRows:
    engine = DuckDBEngine(con)
    rows = encode(
        engine, engine.table("t"), domain, PrivacyUnit("row"), trees=1, sample="all", salt=1
    )
    assert isinstance(rows, DuckDBRows)
    return rows


def voting(tree: Tree, random: np.random.Generator, classes: int) -> Tree:
    odds = random.normal(size=(tree.nodes, classes if classes > 2 else 1))
    votes = integer_votes(odds if classes > 2 else of_two(odds[:, 0]))
    return Tree(tree.kind, tree.attribute, tree.cell, tree.first, None, votes)


@pytest.mark.parametrize("classes", [2, 5])
def test_sums_of_gradients_are_those_of_the_scores(
    con: duckdb.DuckDBPyConnection, classes: int
) -> None:
    fill(con, 500, classes)
    domain, random = public(classes), np.random.default_rng(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        bits = Randomness.seeded(1).bits
    trees = [voting(t, random, classes) for t in random_trees(domain, 5, 3, bits)]
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        trees = random_trees(domain, 3, 3, Randomness.seeded(2).bits)
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


def boosted(
    con: duckdb.DuckDBPyConnection, domain: Domain, delta: int, rows_per_unit: int, folder: Path
) -> tuple[Run, Forest]:
    """A seeded run on the table t with units u, and its forest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        run = prepare(
            con, "t", epsilon=1, delta=delta / ATTO, domain=domain, recipe="boosted", seed=4,
            privacy_unit="u", rows_per_unit=rows_per_unit, ledger=folder / "l",
        )  # fmt: skip
        return run, run.execute()


def numbers(classes: int, more: int = 0) -> Domain:
    """Three numbers, and some categories."""
    kinds = [Attribute(f"n{i}", "numeric", lower=0, upper=100, nullable=False) for i in range(3)]
    texts = [Attribute(f"a{i}", "categorical", ("x", "y", "z")) for i in range(more)]
    types = {**{f"n{i}": DOUBLE for i in range(3)}, **{f"a{i}": VARCHAR for i in range(more)}}
    labels = tuple(f"c{i}" for i in range(classes))
    return Domain((*kinds, *texts), "c", labels).bind({**types, "c": VARCHAR})


@pytest.mark.parametrize("delta", [0, DELTA])
def test_boosting_starts_at_class_means_if_most_attributes_are_numeric_and_rows_allow_it(
    delta: int,
) -> None:
    recipe = find("boosted")

    def purposes(domain: Domain, rows: int) -> set[str]:
        planned = recipe.plan(replace(recipe.request(domain, NANO, delta=delta), rows=rows))
        assert planned.fits(NANO, delta)
        return {query.purpose for query in planned.queries}

    assert {"means", "products", "sweep"} <= purposes(numbers(2), 2_000)
    assert {"means", "products", "sweep"} <= purposes(numbers(5, more=2), 2_000)
    assert "means" not in purposes(numbers(2), 100)
    assert "means" not in purposes(numbers(2, more=3), 10**6)


@pytest.mark.parametrize("delta", [0, DELTA])
@pytest.mark.parametrize("classes", [2, 3])
def test_class_means_that_boosting_starts_at_are_noised_by_what_a_unit_changes(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    delta: int,
    classes: int,
) -> None:
    """Three positions and six products, of which each of three rows moves all in one class. The
    last class has no rows, and is noised as the others.
    """
    con.execute(
        "CREATE TABLE t AS SELECT i // 3 AS u, i % 97 * 1.0 AS n0, i % 31 * 3.0 AS n1, "
        f"(i % 97 + i * i % 53) * 0.6 AS n2, 'c' || ((i % 97) * {classes} // 97) AS c "
        "FROM range(3_000) r(i)"
    )
    given = record(monkeypatch)
    run, forest = boosted(con, numbers(classes + 1), delta, 3, tmp_path)
    settled, k = find("boosted").plan(_seen(counted(run.request, forest))), 3
    costs = []
    for purpose in ("means", "products"):
        query = settled.query(purpose)
        assert query is not None
        costs.append(pytest.approx(query.total, rel=0.011))  # bounds were checked for a percent
    means, products, *_ = (call for call in given if call.mechanism != "laplace")
    assert means.private.shape == (classes + 1, 3)
    assert products.private.shape == (1, 6)
    if delta:
        assert means.price == (costs[0], k**2 * 3 * REACH**2)
        assert products.price == (costs[1], k**2 * 6 * REACH**4)
    else:
        assert (means.blocks, means.price) == ([1] * 3, (costs[0], k * REACH))
        assert (products.blocks, products.price) == ([1] * 6, (costs[1], k * REACH**2))
    assert len(forest.trees) > 3


@pytest.mark.parametrize("delta", [0, DELTA])
@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_the_mechanisms_are_given_what_the_plan_says(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    delta: int,
    rows_per_unit: int,
) -> None:
    fill(con, 12_000, 2)
    con.execute("ALTER TABLE t ADD COLUMN u INTEGER")
    con.execute("UPDATE t SET u = rowid // 3")
    given, mechanisms, draw = record(monkeypatch, medians), set[Mechanism](), Mechanism.draw
    monkeypatch.setattr(
        Mechanism, "draw", lambda self, *rest: mechanisms.add(self) or draw(self, *rest)
    )
    run, forest = boosted(con, public(), delta, rows_per_unit, tmp_path)
    assert mechanisms == {EXPONENTIAL}, "permute-and-flip costs four times as much in μ²"
    measure = GAUSSIAN_DP if delta else PURE_DP
    about = replace(counted(run.request, forest), rows=4000 * rows_per_unit)  # that are used
    settled = find("boosted").plan(about)  # which changes far from here
    counts = [query.total for query in settled.queries if query.purpose in ROW_COUNTS]
    bins, sweep = settled.query("bins"), settled.query("sweep")
    assert bins is not None
    assert sweep is not None
    assert counts[0] == NANO // 400
    assert [call.price for call in given[: len(counts)]] == [(c, rows_per_unit) for c in counts]
    asked = [call.price for call in given if call.mechanism == "exponents"]
    assert not any(call.monotone for call in given)
    assert len(asked) <= len(bins.by_depth)
    assert set(asked) == {(measure.drawn_epsilon(bins.by_depth[0]), rows_per_unit)}
    noise = "gaussian" if delta else "laplace"
    sums = [call.price for call in given[len(counts) :] if call.mechanism == noise]
    assert {bound for _, bound in sums} == {sensitivity(sweep, 2, rows_per_unit)}
    # as many as there are trees and sweeps, and all of the budget for them is used
    fit = [line for line in forest.guarantee.plan if "gradients" in line]
    assert len(fit) == (2 if delta else 1)
    expected = [q for q in settled.queries if q.purpose in ("sweep", "forest")]
    assert sum(cost for cost, _ in sums) == sum(q.total for q in expected)
    assert settled.fits(NANO, delta)
    spent = settled.squared_mu if delta else settled.epsilon
    assert spent > 0.999 * (run.request.squared_mu if delta else NANO)
    assert forest.guarantee.delta == ("0.00001" if delta else "0")


@pytest.mark.parametrize("classes", [2, 3])
def test_sweeps_go_on_from_the_trees_they_start_at(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    monkeypatch: pytest.MonkeyPatch,
    classes: int,
) -> None:
    """Their votes and noise are in the scores of rows before the first sweep, and in the forest."""
    con.execute(
        "CREATE TABLE t AS SELECT i % 97 * 1.0 AS n0, i % 31 * 3.0 AS n1, i % 89 * 1.0 AS n2, "
        f"'x' AS a0, 'c' || ((i % 97) * {classes} // 97) AS c FROM range(3_000) r(i)"
    )
    started: dict[int, Tree] = {}
    before: list[Tree] = []
    start, add = boosting.start_at_means, DuckDBRows.add_votes

    def kept(rows: Any, context: Any) -> dict[int, Tree]:
        started.update(start(rows, context))
        return started

    def added(rows: DuckDBRows, trees: Sequence[Tree]) -> None:
        before.extend(trees)
        add(rows, trees)

    def no_step(self: Any, trees: Sequence[Tree], *_: Any) -> list[Tree]:
        assert {id(tree) for tree in started.values()} <= {id(tree) for tree in before}
        none = np.zeros_like(trees[0].votes)
        return [replace(tree, votes=none, vote_noise=none * 1.0) for tree in trees]

    monkeypatch.setattr(boosting, "start_at_means", kept)
    monkeypatch.setattr(DuckDBRows, "add_votes", added)
    monkeypatch.setattr(boosting._Boosting, "newton_steps", no_step)
    forest = fit(con, "t", domain=numbers(classes, more=1), recipe="boosted", epsilon=5)
    assert sorted(started) == [0, 1, 2]
    for number, tree in started.items():
        assert np.array_equal(forest.trees[1 + number].votes, tree.votes)
        assert tree.vote_noise is not None
        assert tree.vote_noise.max() > 0
        assert np.array_equal(forest.trees[1 + number].vote_noise, tree.vote_noise)
    assert np.ptp(started[0].votes[:, 0]) > np.ptp(started[2].votes[:, 0]), "it says the class"


@pytest.mark.parametrize("delta", [0, DELTA])
@some("classes", [2, 3, 5, 9, 16, 30], keep=2)
@some("attributes", [3, 8, 14], keep=2)
def test_more_rows_never_lead_back_to_a_simpler_recipe(
    attributes: int, classes: int, delta: int
) -> None:
    """For numbers: sums, class means and a tree beside sums for several classes, boosting."""
    kinds = [Attribute(f"n{i}", "numeric", lower=0, upper=100) for i in range(attributes)]
    domain = Domain(tuple(kinds), "c", tuple(f"c{i}" for i in range(classes)))
    order = ["log-odds", "class-means", "tree-beside-sums", "boosted"]
    steps = []
    for rows in (int(10 ** (2 + power / 40)) for power in range(200)):
        name = pick(replace(AUTO.request(domain, NANO, delta=delta), rows=rows)).name
        if name not in ("joint-tables", "rooted-tables"):
            steps.append(order.index(name))
    assert steps == sorted(steps)
    assert steps[-1] == 3
    assert classes > 2 or set(steps) <= {0, 3}, "the sums of two classes are fitted instead"


def _seen(request: Request) -> Request:
    return replace(request, rows=6000)  # far from where the plan changes


@pytest.mark.parametrize("budget", [10**12, 10**15, ATTO])
def test_a_median_costs_no_more_than_its_budget(budget: int) -> None:
    """The exponential mechanism of pure cost ε costs (π/8)·ε² of μ²."""
    epsilon = GAUSSIAN_DP.drawn_epsilon(budget)
    assert drawn_cost(epsilon) <= budget < drawn_cost(epsilon + 1)
    assert drawn_cost(epsilon) == pytest.approx(np.pi / 8 * (epsilon / NANO) ** 2 * ATTO)
    assert PURE_DP.drawn_epsilon(budget) == budget


def numeric() -> Domain:
    own = Attribute("n", "numeric", lower=0, upper=1000)
    chosen = Attribute("m", "numeric", lower=0, upper=10, bins=3)
    types = {"n": DOUBLE, "m": INTEGER, "c": VARCHAR}
    return Domain((own, chosen), "c", ("p", "q")).bind(types)


def test_private_medians_divide_rows_evenly_at_a_large_budget() -> None:
    domain = numeric()
    assert [a.name for a in to_be_cut(domain)] == ["n"], "bins that the domain chose stay"
    grid = on_the_grid(domain)
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(3, 1, 20_000))
    codes = np.searchsorted(grid.attributes[0].edges, values)
    counts = np.bincount(codes, minlength=grid.attributes[0].cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        bits = Randomness.seeded(1).bits
    cut = domain_cut_at_medians(domain, [counts], [NANO] * 3, 1, bits)
    edges = cut.attributes[0].edges
    assert cut.attributes[1] == domain.attributes[1]
    assert len(edges) == 7
    assert set(edges) <= set(grid.attributes[0].edges)
    shares = np.bincount(np.searchsorted(edges, values)) / len(values)
    assert shares.min() > 0.05  # an eighth each, but for the grid
    one = domain_cut_at_medians(domain, [np.zeros_like(counts)], [NANO] * 3, 1, bits)
    assert len(one.attributes[0].edges) == 7, "an empty table tells nothing and fails nowhere"


@given(
    counts=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    where=st.integers(0, 5),
    low=st.integers(0, 3),
)
def test_a_row_moves_the_balance_of_a_cut_by_one(counts: list[int], where: int, low: int) -> None:
    """It changes one interval only, by at most the sensitivity that the exponents use."""

    def balance(rows: Sequence[int]) -> np.ndarray:
        up_to = np.concatenate([[0], np.cumsum(rows)])
        cuts = np.arange(low + 1, 6)
        return -np.abs((up_to[cuts] - up_to[low]) - (up_to[6] - up_to[cuts]))

    more = list(counts)
    more[where] += 1
    assert set(np.abs(balance(more) - balance(counts)).tolist()) <= ({1} if where >= low else {0})


def test_the_grid_is_counted_in_the_database(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    con.execute("CREATE TABLE s (n DOUBLE, k BOOLEAN)")
    con.execute("INSERT INTO s SELECT 1000 * (i / 5000.0) ** 4, i > 2500 FROM range(5000) r(i)")
    domain = Domain((Attribute("n", "numeric", lower=0, upper=1000),), "k", ("false", "true"))
    forest = fit(con, "s", domain=domain, recipe="boosted", epsilon=20, delta=1e-6)
    edges = np.array(forest.domain.attributes[0].edges, dtype=float)
    assert np.abs(edges - 62.5).min() < 10  # the median, where the class turns
    reached = evaluate(con, forest, "s", ledger=tmp_path / "ledger").accuracy
    assert reached is not None
    assert reached > 0.95


@pytest.mark.parametrize("classes", [2, 3])
def test_the_default_learns_interactions_of_attributes(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], classes: int
) -> None:
    con.execute("CREATE TABLE x (a ENUM ('p', 'q'), b ENUM ('p', 'q'), e BOOLEAN, k VARCHAR)")
    con.execute(
        "INSERT INTO x SELECT ['p', 'q'][1 + i % 2], ['p', 'q'][1 + i // 2 % 2], i % 5 = 0,"
        " 'c' || (CASE WHEN i % 2 = i // 2 % 2 THEN 0 WHEN i % 3 = 0 THEN ? - 1 ELSE 1 END)"
        " FROM range(6000) r(i)",
        [classes],
    )
    attributes = tuple(Attribute(c, "categorical", ("p", "q"), nullable=False) for c in "ab")
    attributes += (Attribute("e", "categorical", ("false", "true"), nullable=False),)
    domain = Domain(attributes, "k", tuple(f"c{i}" for i in range(classes)))
    forest = fit(con, "x", domain=domain, recipe="auto", epsilon=4, delta=1e-5)
    rows = [{"a": a, "b": b, "e": True} for a in "pq" for b in "pq"]
    votes = forest.votes(rows)
    assert (votes.argmax(axis=1) == 0).tolist() == [True, False, False, True]


@pytest.mark.parametrize(("delta", "trees"), [(1e-6, 42), (0, 9)])
def test_more_trees_do_not_diverge_if_two_of_several_classes_are_frequent(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    tmp_path: Path,
    delta: float,
    trees: int,
) -> None:
    """Their scores move together, so a Newton step of each alone is up to twice too long."""
    con.execute(
        "CREATE TABLE s AS SELECT i % 2 AS x, CASE WHEN i % 41 = 0 THEN 'rare' "
        "WHEN (i % 2 = 0) = (i % 5 = 0) THEN 'no' ELSE 'yes' END AS c FROM range(4000) r(i)"
    )
    attribute = Attribute("x", "categorical", ("0", "1"), nullable=False)
    domain = Domain((attribute,), "c", ("no", "yes", "rare"))
    forest = fit(con, "s", domain=domain, recipe="boosted", epsilon=1000, delta=delta, trees=40)
    assert len(forest.trees) == trees
    reached = evaluate(con, forest, "s", ledger=tmp_path / "ledger").log_loss
    counts = con.sql("SELECT count(*) FROM s GROUP BY x, c ORDER BY x, c").fetchnumpy()
    held = counts["count_star()"].reshape(2, -1)
    best = -(held * np.log(held / held.sum(axis=1, keepdims=True))).sum() / held.sum()
    assert reached is not None
    assert reached < best + 0.01


def test_auto_does_not_pick_boosted_for_few_rows(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    fill(con, 300, 2)
    forest = fit(con, "t", domain=public(), recipe="auto", epsilon=0.5, delta=1e-5)
    assert not any("gradients" in line for line in forest.guarantee.plan)
    # a noisy figure decides which of the two it is, so δ is spent either way
    assert forest.guarantee.delta == "0.00001"
    pure = fit(con, "t", domain=public(), recipe="greedy-tree", epsilon=0.5, delta=1e-5)
    assert pure.guarantee.delta == "0"


def test_auto_picks_boosted_without_a_delta_for_very_many_rows(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """An effect of two attributes together: random trees find it, one-split trees cannot."""
    right = {}
    for rows in (1500, 40_000):
        fill(con, rows, 2)
        con.execute("UPDATE t SET c = CASE WHEN (a = 'x') = (n > 50) THEN 'c1' ELSE 'c0' END")
        forest = fit(con, "t", domain=public(), recipe="auto", epsilon=1)
        assert any("gradients" in line for line in forest.guarantee.plan) == (rows == 40_000)
        assert forest.guarantee.delta == "0"
        ((hits,),) = forest.predict(con, "t").filter("prediction = c").count("*").fetchall()
        right[rows] = hits / rows
    assert right[40_000] > max(0.9, right[1500])


def test_scores_take_temporary_space_with_a_delta_or_without(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    fill(con, 10, 2)

    def needed(recipe: str, **options: float) -> int:
        own = prepare(con, "t", epsilon=1, domain=public(), recipe=recipe,
                      ledger=tmp_path / "l", **options)  # fmt: skip
        return own.bytes_of_a_row

    assert needed("boosted") == needed("boosted", delta=1e-5) > needed("greedy-tree", trees=1)
    assert needed("auto") == needed("auto", delta=1e-5)


# turns of bins, sweeps, random trees and their splits, by a signal below each size
SIZES: dict[int, list[tuple[float, tuple[int, int, int, int]]]] = {
    DELTA: [(constants.ENOUGH, (3, 1, 16, 4)), (constants.AMPLE, (4, 2, 64, 4))],
    0: [(constants.AMPLE, (3, 2, 0, 4))],
}
TWO_CLASSES = {constants.ENOUGH: PURE * constants.ENOUGH}  # with a δ they need a stronger signal
DEEP_SIZE = {DELTA: (5, 2, 64, 6), 0: (5, 1, 16, 6)}
FINEST_SIZE = {DELTA: (6, 2, 64, 6), 0: (6, 1, 12, 8)}  # at ten times the signal


@pytest.mark.parametrize("delta", [0, DELTA])
@pytest.mark.parametrize(("classes", "rare"), [(2, 0.5), (2, 0.05), (5, 0.2)])
def test_trees_are_more_and_deeper_with_a_stronger_signal(
    classes: int, rare: float, delta: int
) -> None:
    """With several classes and without a δ, a row changes sums by three times as much.

    With a δ, and for the finest bins, rows count in proportion to the variance of the class:
    4 s (1 - s) of two.
    """
    attributes = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=100) for i in range(8))
    types = {**{each.name: DOUBLE for each in attributes}, "c": VARCHAR}
    domain = Domain(attributes, "c", tuple(f"c{i}" for i in range(classes))).bind(types)
    found = []
    for rows in (int(10 ** (2 + power / 40)) for power in range(240)):
        asked = find("boosted").request(domain, NANO, delta=delta)
        others = np.full(classes - 1, round(rows * (1 - rare) / (classes - 1)))
        counts = np.append(others, round(rows * rare))
        request = adaptation.sized(find("boosted"), asked, counts)
        plan = find("boosted").plan(request)
        bins, sweep, forest = (plan.query(name) for name in ("bins", "sweep", "forest"))
        assert bins
        assert sweep
        trees = forest.times if forest else 0
        size = (len(bins.by_depth), len(sweep.by_depth), trees, request.depth)
        times = 3 if classes > 2 and not delta else 1
        shares = counts / counts.sum()
        mixed = (1 - (shares**2).sum()) / (1 - 1 / classes)
        clear = signal(request) * (mixed if delta else 1)
        limits = TWO_CLASSES if classes == 2 else {}
        below = (size for limit, size in SIZES[delta] if clear < limits.get(limit, limit) * times)
        finest = signal(request) * mixed >= 10 * constants.AMPLE * times
        assert size == next(below, (FINEST_SIZE if finest else DEEP_SIZE)[delta])
        found.append(size)
    assert len(set(found)) == len(SIZES[delta]) + 2


@pytest.mark.parametrize(("delta", "trees", "splits"), [(1e-6, 64, 6), (0, 12, 8)])
@pytest.mark.more
def test_random_trees_have_the_depth_that_the_signal_allows(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    delta: float,
    trees: int,
    splits: int,
) -> None:
    """The first tree has no split, and one of each attribute follows."""
    fill(con, 2000, 2)
    forest = fit(con, "t", domain=public(), recipe="boosted", epsilon=1000, delta=delta)
    attributes = len(public().attributes)
    assert len(forest.trees) == 1 + attributes + trees
    cells = forest.domain.cells
    assert max(tree.depth(cells) for tree in forest.trees[1 + attributes :]) == splits


def test_leaves_of_random_trees_can_all_be_reached() -> None:
    domain = public()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        trees = random_trees(domain, 20, 4, Randomness.seeded(0).bits)
    every = np.array(list(itertools.product(*(range(cells) for cells in domain.cells))))
    for tree in trees:
        assert set(tree.find(every)) == set(tree.leaves)
        assert tree.counts is None
    assert len({tuple(tree.attribute) for tree in trees}) > 10
    tiny = Domain((Attribute("a", "categorical", ("x",), nullable=False),), "c", ("p", "q"))
    (single,) = random_trees(tiny, 1, 4, Randomness.secure().bits)
    assert single.kind.tolist() == [1, LEAF, LEAF] or (single.kind != LEAF).sum() == 1


@settings(deadline=None)
@given(st.integers(2, 40), st.floats(1e-3, 1e6), st.integers(0, 2**20), st.booleans())
def test_steps_are_bounded_and_shrink_with_noise(
    values: int, variance: float, seed: int, ordered: bool
) -> None:
    random = np.random.default_rng(seed)
    gradients, hessians = random.normal(0, 50, values), random.normal(20, 40, values)

    def taken(gradients: np.ndarray, variance: float) -> np.ndarray:
        return steps(gradients, hessians, variance, values if ordered else 0, largest=2)[0]

    found = taken(gradients, variance)
    assert found.shape == (values,)
    assert np.abs(found).max() <= 2
    noisier = taken(gradients, 1e9)
    assert np.abs(noisier).max() < 0.2
    zero = taken(0 * gradients, variance)
    assert np.abs(zero).max() < 1e-9


@pytest.mark.parametrize("ordered", [0, 12])
def test_the_noise_in_steps_is_as_stated(ordered: int) -> None:
    """Steps from the same sums with fresh noise; models share weight, so to first order only."""
    random = np.random.default_rng(1)
    hessians = np.linspace(20.0, 200.0, 12)
    gradients, variance = np.sin(np.arange(12) / 3) * hessians, 15.0**2
    found = [
        steps(gradients + random.normal(0, 15, 12), hessians, variance, ordered, largest=2)
        for _ in range(200)
    ]
    taken, stated = map(np.array, zip(*found, strict=True))
    ratio = taken.std(axis=0) / np.sqrt((stated**2).mean(axis=0))
    assert ratio.min() > 0.7
    assert ratio.max() < 1.4


@pytest.mark.parametrize("largest", [1.0, 2.0])
def test_a_step_is_bounded_if_hessians_are_almost_zero(largest: float) -> None:
    """A model that is overconfident in a wrong class has large gradients and tiny hessians."""
    gradients, hessians = np.array([-500.0, 400.0, 300.0]), np.array([3.0, 2.0, 4.0])
    found, _ = steps(gradients, hessians, 1.0, largest=largest)
    assert (np.abs(found) <= largest).all()
    assert (np.sign(found) == np.sign(gradients)).all()
    assert (np.abs(found) > largest / 2).all()


def test_a_step_from_hardly_any_rows_is_that_of_a_quarter_of_one() -> None:
    """Noise can take a hessian to 0 or below."""
    least, *found = (
        steps(np.array([0.1]), np.array([hessian]), 1e-6, largest=2.0)[0].item()
        for hessian in (LEAST_HESSIAN, 0.0, -3.0)
    )
    assert 0 < least < 0.1 / LEAST_HESSIAN
    assert found == [least, least]


def test_steps_of_many_values_without_an_order_take_little_memory() -> None:
    """A matrix of 20,000 values times themselves would take 3 GB."""
    gradients, hessians = np.full(20_000, 30.0), np.full(20_000, 10.0)
    tracemalloc.start()
    found, deviation = steps(gradients, hessians, 4.0, largest=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**8
    assert found == pytest.approx(found[0])
    assert 1 < found[0] <= 2  # Newton's step is 3
    assert deviation == pytest.approx(deviation[0])


def test_steps_stay_near_zero_where_those_before_were_noise() -> None:
    """And the widths of informative attributes are learnt from them in the same way."""
    random = np.random.default_rng(1)
    hessians, sums = np.full(4, 100.0), random.normal(0, 30, 4)
    alone, _ = steps(sums, hessians, 900.0, largest=2)
    for width in (0.0, 1.0):
        widths = StepWidths()
        for _ in range(50):
            drawn = random.normal(0, width, 4) * hessians + random.normal(0, 30, 4)
            steps(drawn, hessians, 900.0, largest=2, widths=widths)
        assert widths.weights.sum() == pytest.approx(1)
        nearest = np.abs(np.array(STEP_WIDTHS) - width).argmin()
        assert widths.weights.argmax() == nearest
        after, _ = steps(sums, hessians, 900.0, largest=2, widths=widths)
        assert (np.abs(after) < np.abs(alone)).all() == (width == 0)


@pytest.mark.parametrize("name", ["boosted", "tree-beside-sums"])
def test_each_attribute_that_is_cut_is_paid_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A row is in every attribute's counts, so each attribute needs a part of its own."""
    numbers = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=999) for i in range(4))
    numbers = (*numbers[:3], replace(numbers[3], bins=5))
    domain = Domain((*numbers, Attribute("a", "categorical", ("x", "y"))), "c", ("p", "q"))
    domain = domain.bind(
        {**dict.fromkeys(["n0", "n1", "n2", "n3"], DOUBLE), "a": VARCHAR, "c": VARCHAR}
    )
    recipe, spent, exponents = find(name), 0, medians.exponents

    def recorded(utilities, allowed, cost, bound, monotone):  # type: ignore[no-untyped-def]
        nonlocal spent
        spent += cost  # the intervals of a turn hold different rows
        return exponents(utilities, allowed, cost, bound, monotone)

    monkeypatch.setattr(medians, "exponents", recorded)
    request = replace(recipe.request(domain, NANO), rows=10**6)
    plan = recipe.plan(request)
    query = plan.query("bins")
    assert query is not None
    assert query.times == len(to_be_cut(domain)) == 3
    private = [np.ones(fine.cells, dtype=np.int64) for fine in on_the_grid(domain).attributes]
    with pytest.warns(NotPrivateWarning):
        bits = Randomness.seeded(0).bits
    cut_at_medians(private, request, Accountant(plan, NANO, 0), bits)
    assert spent == query.total
    counts = sum(each.total for each in plan.queries if each.purpose in ROW_COUNTS)
    assert query.total == pytest.approx(0.08 * (NANO - counts), rel=1e-6)


def test_a_plan_without_bins_has_no_query_for_bins() -> None:
    domain = Domain((Attribute("a", "categorical", ("x", "y")),), "c", ("p", "q"))
    for delta in (0, DELTA):
        request = find("boosted").request(domain, NANO, delta=delta)
        plan = find("boosted").plan(request)
        assert plan.query("bins") is None
        assert plan.fits(NANO, delta)
        account = Accountant(plan, NANO, delta)
        with pytest.raises(AssertionError, match="bins"):
            cut_at_medians([], request, account, Randomness.secure().bits)
