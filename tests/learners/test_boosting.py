"""Boosting: forests from scores kept in the database, and what they are given."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from boosted_rows import DELTA, fill, numbers, public
from recorder import record
from steps import counted, seeded

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.learners import boosting
from dpforest_duckdb.learners import private_bins as medians
from dpforest_duckdb.learners.boosting import random_trees, sensitivity
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.attribute_gains import FittedValues
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.selection import EXPONENTIAL, Mechanism
from dpforest_duckdb.recipes import find
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.positions import REACH
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run
from dpforest_duckdb.tree import LEAF, SCALE, Tree


def boosted(
    con: duckdb.DuckDBPyConnection, domain: Domain, delta: int, rows_per_unit: int, folder: Path
) -> tuple[Run, Forest]:
    """A seeded run on the table t with units u, and its forest."""
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        run = prepare(
            con, "t", epsilon=1, delta=delta / ATTO, domain=domain, recipe="boosted", seed=4,
            privacy_unit="u", rows_per_unit=rows_per_unit, ledger=folder / "l",
        )  # fmt: skip
        return run, run.execute()


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
    asked_for, choose = list[Any](), boosting.worth_another_step

    def choosing(fitted: Any, *variances: Any) -> list[int]:
        asked_for[:] = variances
        return choose(fitted, *variances)

    monkeypatch.setattr(boosting, "worth_another_step", choosing)
    spent_for, spend = set[str](), Accountant.spend
    monkeypatch.setattr(
        Accountant,
        "spend",
        lambda self, of, *_, **how: spent_for.add(of) or spend(self, of, *_, **how),
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
    # all of the budget for sweeps and trees is used, but for rounding in the second sweep
    fit = [line for line in forest.guarantee.plan if "gradients" in line]
    assert len(fit) == (3 if delta else 1)
    expected = [q for q in settled.queries if q.purpose in ("sweep", "sweep again", "forest")]
    used, whole = sum(cost for cost, _ in sums), sum(q.total for q in expected)
    assert whole - len(public().attributes) < used <= whole
    assert spent_for >= {query.purpose for query in expected}
    if delta:  # the choice knows the variance of the noise
        again = settled.query("sweep again")
        assert again is not None
        (before, later), bound = asked_for, sensitivity(sweep, 2, rows_per_unit)
        assert before == pytest.approx(bound * ATTO / sweep.by_depth[0] / boosting.WHOLE**2)
        assert later(2) == pytest.approx(bound * ATTO / (again.total // 2) / boosting.WHOLE**2)
    assert settled.fits(NANO, delta)
    spent = settled.squared_mu if delta else settled.epsilon
    assert spent > 0.999 * (run.request.squared_mu if delta else NANO)
    assert forest.guarantee.delta == ("0.00001" if delta else "0")


def test_a_sweep_and_the_forest_each_learn_one_set_of_widths(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All random trees share it, so each learns from those before."""
    widths = []
    steps = boosting.steps

    def recorded(*sums: Any, **given: Any) -> Any:
        widths.append(given["widths"])
        return steps(*sums, **given)

    monkeypatch.setattr(boosting, "steps", recorded)
    fill(con, 4000, 2)
    con.execute("ALTER TABLE t ADD COLUMN u INTEGER")
    con.execute("UPDATE t SET u = rowid")
    run, forest = boosted(con, public(), DELTA, 1, tmp_path)
    plan = find("boosted").plan(replace(counted(run.request, forest), rows=4000))
    sweep, trees = plan.query("sweep"), plan.query("forest")
    assert sweep is not None
    assert trees is not None
    first, second, third = (len(list(same)) for _, same in itertools.groupby(widths, id))
    assert (first, third) == (sweep.times, trees.times)
    assert 1 <= second <= sweep.times


@pytest.mark.parametrize("delta", [0, DELTA])
def test_the_second_sweep_divides_its_cost_among_the_attributes_that_it_has(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, delta: int
) -> None:
    """Three classes: two sweeps without a δ too. Two attributes of ten say something."""
    codes = ", ".join(f"chr(97 + (hash(i + {n}) % 3)::INTEGER) AS a{n}" for n in range(10))
    con.execute(
        f"CREATE TABLE t AS SELECT i AS u, {codes}, 'c' || CASE WHEN i % 4 = 0 "
        "THEN hash(i + 1) % 3 ELSE hash(i) % 3 END AS c FROM range(8_000) r(i)"
    )
    attributes = tuple(
        Attribute(f"a{n}", "categorical", ("a", "b", "c"), nullable=False) for n in range(10)
    )
    given, chosen, choose = record(monkeypatch), list[list[int]](), boosting.worth_another_step

    def choosing(*released: Any) -> list[int]:
        chosen.append(choose(*released))
        return chosen[-1]

    monkeypatch.setattr(boosting, "worth_another_step", choosing)
    rounds, event = list[Any](), boosting.Event
    monkeypatch.setattr(boosting, "Event", lambda *said: rounds.append(said) or event(*said))
    run, forest = boosted(con, Domain(attributes, "c", ("c0", "c1", "c2")), delta, 1, tmp_path)
    plan = find("boosted").plan(replace(counted(run.request, forest), rows=8_000))
    first, again, trees = (plan.query(name) for name in ("sweep", "sweep again", "forest"))
    assert first is not None
    assert again is not None
    noise = "gaussian" if delta else "laplace"
    costs = [call.cost for call in given if call.mechanism == noise]
    costs = costs[costs.index(first.by_depth[0]) :]
    (some,) = chosen
    assert {0, 1} <= set(some)
    assert len(some) < 5
    second = [again.total // len(some)] * len(some)
    forest_of = [] if trees is None else list(trees.by_depth) * trees.times
    assert costs == list(first.by_depth) * 10 + second + forest_of
    assert some == sorted(some)
    *_, (_, done, whole, _) = (said for said in rounds if "round" in said)
    assert done == whole


@pytest.mark.parametrize("delta", [0, 1e-5])
def test_nothing_but_released_figures_decides_about_attributes_and_votes(
    fit: Callable[..., Forest], monkeypatch: pytest.MonkeyPatch, delta: float
) -> None:
    """Noise that ignores the sums and counts it gets: two tables of other rows are then alike."""
    seen: list[Any] = []

    def blind(self: ExactNoise, private: np.ndarray, cost: int, bound: int) -> np.ndarray:
        of_gradients = bound >= boosting.WHOLE
        random = np.random.default_rng(private.size + len(seen))
        seen.append(cost)
        if of_gradients:
            return random.integers(-300, 900, private.shape) * boosting.WHOLE
        return np.full_like(private, 1_000)

    def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*released: Any) -> Any:
            seen.append(function(*released))
            return seen[-1]

        return called

    for mechanism in ("laplace", "gaussian"):
        monkeypatch.setattr(ExactNoise, mechanism, blind)
    for name in ("worth_another_step", "draw_weights"):
        monkeypatch.setattr(boosting, name, recorded(getattr(boosting, name)))
    attributes = tuple(
        Attribute(f"a{n}", "categorical", ("a", "b", "c"), nullable=False) for n in range(6)
    )
    domain, found = Domain(attributes, "c", ("c0", "c1", "c2")), []
    for table in range(2):
        con = duckdb.connect()
        codes = ", ".join(
            f"chr(97 + (hash(i + {n + 70 * table}) % 3)::INTEGER) AS a{n}" for n in range(6)
        )
        con.execute(
            f"CREATE TABLE t AS SELECT {codes}, 'c' || hash(i + {71 * table}) % 3 AS c "
            "FROM range(3_000) r(i)"
        )
        forest = fit(con, "t", domain=domain, recipe="boosted", epsilon=8, delta=delta, seed=3)
        found.append(([str(each) for each in seen], [tree.votes.tolist() for tree in forest.trees]))
        seen.clear()
    assert found[0] == found[1]
    assert len(found[0][0]) > len(attributes)


def test_draws_of_random_trees_go_by_class_means_and_both_sweeps_too(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the last step alone: the votes that they go by are those in the forest."""
    given: list[Any] = []
    weigh = boosting.draw_weights

    def recorded(*released: Any) -> Any:
        given.append(released)
        return weigh(*released)

    monkeypatch.setattr(boosting, "draw_weights", recorded)
    con.execute(
        "CREATE TABLE t AS SELECT i % 97 * 1.0 AS n0, i % 31 * 3.0 AS n1, i % 89 * 1.0 AS n2, "
        "'x' AS a0, 'c' || ((i % 97) * 2 // 97) AS c FROM range(6_000) r(i)"
    )
    forest = fit(
        con, "t", domain=numbers(2, more=1), recipe="boosted", epsilon=2, delta=1e-5, seed=1
    )
    ((log_odds, _),) = given
    assert len(log_odds) == 4
    for odds, tree in zip(log_odds, forest.trees[1:5], strict=True):
        assert (np.rint(odds * SCALE) == tree.votes[tree.leaves]).all()


def test_random_trees_split_more_often_by_attributes_that_say_more(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    fill(con, 4000, 2)
    con.execute("UPDATE t SET c = CASE WHEN n > 50 THEN 'c1' ELSE 'c0' END")
    forest = fit(con, "t", domain=public(), recipe="boosted", epsilon=5, delta=1e-5)
    attributes = len(public().attributes)
    roots = [int(tree.attribute[0]) for tree in forest.trees[1 + attributes :]]
    number = [each.name for each in public().attributes].index("n")
    assert len(roots) == 64
    assert roots.count(number) > 64 * 0.5, "two thirds on average; a third if all were alike"
    assert len(set(roots)) == attributes, "half of the draws are uniform"


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

    def no_step(self: Any, trees: Sequence[Tree], *_: Any) -> list[Any]:
        assert {id(tree) for tree in started.values()} <= {id(tree) for tree in before}
        none = np.zeros_like(trees[0].votes)
        values = FittedValues(np.zeros((1, 1)), np.ones((1, 1)))
        return [
            boosting._Step(replace(tree, votes=none, vote_noise=none * 1.0), values)
            for tree in trees
        ]

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


def _seen(request: Request) -> Request:
    return replace(request, rows=6000)  # far from where the plan changes


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


@pytest.mark.parametrize(("delta", "trees"), [(1e-6, 42), (0, 12)])
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


def test_leaves_of_random_trees_can_all_be_reached() -> None:
    domain = public()
    trees = random_trees(domain, 20, 4, np.ones(len(domain.attributes)), seeded().bits)
    every = np.array(list(itertools.product(*(range(cells) for cells in domain.cells))))
    for tree in trees:
        assert set(tree.find(every)) == set(tree.leaves)
        assert tree.counts is None
    assert len({tuple(tree.attribute) for tree in trees}) > 10
    tiny = Domain((Attribute("a", "categorical", ("x",), nullable=False),), "c", ("p", "q"))
    (single,) = random_trees(tiny, 1, 4, np.ones(len(tiny.attributes)), Randomness.secure().bits)
    assert single.kind.tolist() == [1, LEAF, LEAF] or (single.kind != LEAF).sum() == 1
