"""Tables below roots: what a row changes, what follows from the tables, which model is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from recorder import NoNoise, record
from steps import encode, seeded

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners import mixtures, rooted_tables
from dpforest_duckdb.learners.rooted_tables import _mixtures
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.additive import (
    iterative_proportional_fit,
    naive_bayes,
    without_interaction,
)
from dpforest_duckdb.postprocess.below_root import FEW, ChildTables, models
from dpforest_duckdb.postprocess.class_shares import shares_around
from dpforest_duckdb.postprocess.share_likelihoods import NoisyTable
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.recipes import find
from dpforest_duckdb.request import TrainingContext
from dpforest_duckdb.splits import choose
from dpforest_duckdb.splits.table_codes import TableCodes
from dpforest_duckdb.tree import SCALE

SIZES = (2, 3, 6)


def public(sizes: Sequence[int] = SIZES, classes: int = 3) -> Domain:
    made = tuple(
        Attribute(f"c{number}", "categorical", tuple("abcdefgh"[:size]), nullable=False)
        for number, size in enumerate(sizes)
    )
    types = {attribute.name: VARCHAR for attribute in made} | {"k": VARCHAR}
    return Domain(made, "k", tuple(f"k{i}" for i in range(classes))).bind(types)


def released(
    con: duckdb.DuckDBPyConnection, rows: Sequence[Sequence[str]], k: int = 1
) -> tuple[ChildTables, NoNoise]:
    """The tables without noise, and what was asked for, below two of the first two attributes."""
    con.execute("CREATE OR REPLACE TABLE t (c0 VARCHAR, c1 VARCHAR, c2 VARCHAR, k VARCHAR)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [list(row) for row in rows])
    recipe, engine = find("rooted-tables"), DuckDBEngine(con)
    request = replace(recipe.request(public(), NANO, rows_per_unit=k), rows=10**9)
    plan = recipe.plan(request)
    assert len(plan.query("root").by_depth) == 2  # type: ignore[union-attr]
    coded = encode(engine, engine.table("t"), public())
    noise = NoNoise()
    random = Randomness(noise, seeded(1).bits, 1)  # type: ignore[arg-type]
    context = TrainingContext(recipe, request, Accountant(plan, NANO, 0), random, lambda _: None)
    found = rooted_tables._released(coded, context, range(2))
    coded.drop()
    return found, noise


def some_rows(number: int) -> list[tuple[str, ...]]:
    random = np.random.default_rng(number)
    return [
        (*("abcdefgh"[random.integers(size)] for size in SIZES), f"k{random.integers(3)}")
        for _ in range(number)
    ]


def norm(difference: np.ndarray, dimensions: Sequence[int]) -> int:
    """The norm of `CountNoise.joint`: over vectors, the sum of the largest L1 norm of a block."""
    ends = np.cumsum(dimensions)[:-1]
    blocked = [np.abs(part).sum(axis=1) for part in np.split(difference, ends, axis=1)]
    return int(np.stack(blocked).max(axis=0).sum())


@pytest.mark.parametrize("k", [1, 3])
def test_a_row_more_changes_the_released_vectors_by_the_sensitivity_at_most(
    con: duckdb.DuckDBPyConnection, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the norm of the noise; k rows of a unit change them by the stated sensitivity."""
    monkeypatch.setattr(rooted_tables, "draw_best", lambda *_: 0)
    rows = some_rows(40)
    before = released(con, rows, k)[1].given[-1]
    for start in range(3):
        more = [*rows, *some_rows(41 + start)[:k]]
        after = released(con, more, k)[1].given[-1]
        assert 0 < norm(after.private - before.private, after.blocks) <= after.bound
    assert before.bound == k * TableCodes(public().attributes[2:]).parts(k)


def test_every_combination_of_values_is_released_with_noise(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those below which there is no row: the grid is public."""
    monkeypatch.setattr(rooted_tables, "draw_best", lambda *_: 0)
    tables, noise = released(con, [("a", "b", "c", "k1")] * 7)
    assert tables.roots == [0, 1]
    asked = noise.given[-1]
    assert asked.blocks == TableCodes(public().attributes[2:]).blocks
    assert asked.private.shape == (2 * 3 * 3, sum(asked.blocks))
    assert tables.totals.tolist() == [[0, 7 * (child == 1), 0] for child in range(6)]
    assert tables.counts[0].shape == (6, 6, 3)
    assert tables.counts[0][1, 2].tolist() == [0, 7, 0]


@pytest.mark.parametrize("k", [1, 4])
def test_draws_are_monotone_with_the_sensitivity_of_counts_and_points(
    con: duckdb.DuckDBPyConnection, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit raises each most frequent class of a root by k at most, in children too."""
    given = record(monkeypatch, choose)
    rows = [("a", "b", "c", "k1"), ("a", "b", "c", "k2"), ("a", "c", "d", "k2")]
    released(con, rows, k)
    first, second = (call for call in given if call.mechanism == "exponents")
    assert [(call.bound, call.monotone) for call in (first, second)] == [(k, True)] * 2
    assert first.private.tolist() == [[2, 2]]
    # whichever is first, the pair of values (a, b) has both classes
    assert second.private.tolist() == [[2]]


def test_class_shares_without_interaction_have_the_given_margins() -> None:
    random = np.random.default_rng(3)
    weights = random.dirichlet(np.ones(12)).reshape(3, 4)
    true = random.dirichlet(np.ones(5), (3, 4))
    root = (true * weights[..., None]).sum(axis=1) / weights.sum(axis=1)[:, None]
    other = (true * weights[..., None]).sum(axis=0) / weights.sum(axis=0)[:, None]
    found = without_interaction(root, other, weights, [4])
    assert np.allclose(found.sum(axis=2), 1)
    again = (found * weights[..., None]).sum(axis=0) / weights.sum(axis=0)[:, None]
    assert np.abs(again - other).max() < 1e-3
    odds = np.log(found)  # no three-way term: differences of differences are equal
    mixed = odds - odds[:1] - odds[:, :1] + odds[:1, :1]
    assert np.ptp(mixed, axis=2).max() < 1e-9
    tables = [weights[:, [2]] * [0.7, 0.3], weights]
    over = np.concatenate([other[[2, 2]], other])
    together = without_interaction(root, over, np.concatenate(tables, axis=1), [2, 4])
    assert np.allclose(together[:, 2:], found), "another attribute changes nothing"


def test_fitted_log_odds_give_the_released_shares_where_attributes_are_independent() -> None:
    """Naive Bayes does not: its attributes are independent within each class only."""
    random = np.random.default_rng(4)
    effects, weights = random.normal(0, 1.5, (3, 4, 3)), [np.full(4, 0.25)] * 3
    grid = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)

    def shares_of(odds: np.ndarray) -> np.ndarray:
        mass = np.exp(odds - odds.max(axis=1, keepdims=True))
        shares: np.ndarray = mass / mass.sum(axis=1, keepdims=True)
        return shares

    true = shares_of(sum(effects[a][grid[:, a]] for a in range(3)))
    marginal = [
        np.stack([true[grid[:, a] == value].mean(axis=0) for value in range(4)]) for a in range(3)
    ]
    loss = {}
    for way in (naive_bayes, iterative_proportional_fit):
        found = way(
            true.mean(axis=0)[None], [share[None] for share in marginal], [w[None] for w in weights]
        )
        odds = found.start[0] + sum(found.added[a][0][grid[:, a]] for a in range(3))
        loss[way.__name__] = float(-(true * np.log(shares_of(odds))).sum(axis=1).mean())
    entropy = float(-(true * np.log(true)).sum(axis=1).mean())
    assert loss["iterative_proportional_fit"] < entropy + 0.01
    assert loss["naive_bayes"] > entropy + 0.03


def test_shares_stay_where_they_were_expected_if_the_noise_hides_the_counts() -> None:
    expected = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    counts = np.array([[30.0, 40, 30], [500, 0, 0]])
    (hidden,) = shares_around([NoisyTable(counts, 1e8)], [expected])
    assert np.abs(hidden - expected).max() < 0.02
    (shown,) = shares_around([NoisyTable(counts * 100, 1.0)], [expected])
    assert np.abs(shown[0] - [0.3, 0.4, 0.3]).max() < 0.02
    assert shown[1, 0] > 0.9


def test_a_single_cell_may_show_an_interaction_where_the_others_show_none() -> None:
    """One width for all cells would take half of it away, and let more noise into the others."""
    random, likely = np.random.default_rng(1), np.full(40, 0.5)
    likely[0] = 0.95
    yes = random.binomial(200, likely)
    noisy = np.stack([200 - yes, yes], axis=1) + random.normal(0, 15, (40, 2))
    (found,) = shares_around([NoisyTable(noisy, 15.0**2)], [np.full((40, 2), 0.5)])
    shares = found[:, 1]
    assert shares[0] > 0.8
    assert np.abs(shares[1:] - 0.5).mean() < 0.03


def exclusive_or() -> ChildTables:
    """Two classes that two roots tell together, and neither alone, with some noise."""
    random = np.random.default_rng(6)
    totals = np.array([[900, 100], [100, 900], [100, 900], [900, 100]])
    counts = [np.stack([totals // 2, totals - totals // 2], axis=1)]
    noisy = [own + random.integers(-5, 6, own.shape) for own in counts]
    return ChildTables(public((2, 2, 2), 2), [0, 1], [2], totals, noisy, [4.0], 4.0)


def informative(sizes: Sequence[int]) -> ChildTables:
    """Two classes and attributes of two values without roots; an attribute says more the more rows
    its values have in one class each.
    """
    totals = np.array([[1000, 1000]])
    counts = [np.array([[[500 + more, 500 - more], [500 - more, 500 + more]]]) for more in sizes]
    domain = public([2] * len(sizes), 2)
    return ChildTables(domain, [], list(range(len(sizes))), totals, counts, [2.0] * len(sizes), 2.0)


def test_models_of_few_attributes_have_those_that_say_most() -> None:
    whole, fitted, *few = models(informative([10, 300, 0, 90, 20, 200, 50, 5, 0, 30]))
    assert whole.places == fitted.places == tuple(range(10))
    assert [model.places for model in few] == [(1,), (1, 5), (1, 5, 3, 6)]
    for model in few:
        (alone,) = model.odds.added[0]
        ahead = alone[:, 1] - alone[:, 0]
        assert ahead[0] < -1 < 1 < ahead[1]
        assert len(model.odds.added) == len(model.places)
        assert len(whole.odds.added) == 10
    assert len(models(informative([10, 300]))) == 3, "two attributes are all"


def test_trees_hold_what_is_released_of_each_combination_of_values() -> None:
    """Leaves of values that the domain does not describe hold nothing, and vote for all others."""
    attributes = [Attribute(name, "categorical", ("a", "b")) for name in ("first", "second")]
    types = dict.fromkeys(("first", "second", "k"), VARCHAR)
    domain, random = (
        Domain(tuple(attributes), "k", ("p", "q")).bind(types),
        np.random.default_rng(0),
    )
    sizes = [len(attribute.described) for attribute in domain.attributes]
    counts, odds = random.integers(-9, 99, (*sizes, 2)), random.normal(size=(*sizes, 2))
    odds[..., 0] = -odds[..., 1]
    path = rooted_tables._Path.of(domain, [0, 1], counts, 3.0)
    tree, otherwise = path.voting(odds, np.array([-0.75, 0.75])), 0
    assert tree.counts is not None
    assert tree.noise is not None
    for codes in np.ndindex(domain.cells):
        (leaf,) = tree.find(np.array([codes]))
        if any(code not in a.described for code, a in zip(codes, domain.attributes, strict=True)):
            otherwise += 1
            known, expected = np.zeros(2), 1.5
            assert np.isnan(tree.noise[leaf])
        else:
            places = zip(codes, domain.attributes, strict=True)
            place = tuple(list(a.described).index(code) for code, a in places)
            known, expected = counts[place], 2 * odds[place][1]
            assert tree.noise[leaf] == 3.0
        assert tree.counts[leaf].tolist() == known.tolist()
        apart = tree.votes[leaf, 1] - tree.votes[leaf, 0]
        assert apart / SCALE == pytest.approx(expected, abs=0.002)
    assert otherwise


def test_other_attributes_decide_where_the_value_of_a_root_is_not_in_the_domain() -> None:
    """The log-odds are those of all rows, with what the roots say whose value is known."""
    effects = [np.array(odds) for odds in ((0.3, -0.3), (-0.5, 0.5), (1.0, -0.4))]
    sums = sum(np.ix_(*effects), start=np.zeros(()))
    shares = 1 / (1 + np.exp(-sums))  # of class 0, for each combination of values
    counts = np.rint(1e5 * np.stack([shares, 1 - shares], axis=-1)).astype(np.int64)
    domain, below = public((2, 2, 2), 2), counts.reshape(4, 2, 2)
    tables = ChildTables(domain, [0, 1], [2], below.sum(axis=1), [below], [1.0], 1.0)
    unlisted = 2
    assert domain.cells == (3, 3, 3)
    for trees in rooted_tables._trees(tables)[:2]:
        for codes in [(2, 2, 0), (2, 2, 1), (0, 2, 1), (1, 2, 0), (2, 0, 0), (2, 1, 1)]:
            votes = sum(tree.votes[tree.find(np.array([codes]))[0]] for tree in trees)
            known = [(axis, code) for axis, code in enumerate(codes) if code != unlisted]
            expected = sum(effects[axis][code] for axis, code in known)
            assert (votes[0] - votes[1]) / SCALE == pytest.approx(expected, abs=0.12), codes


def test_a_mixture_is_naive_bayes_with_a_weight_or_another_model_alone() -> None:
    weighed = [(20, 20, 0, 0), (20, 13, 0, 0), (20, 8, 0, 0)]
    assert _mixtures(2) == [*weighed, (0, 0, 20, 0), (0, 0, 0, 20)]


def test_a_model_of_few_attributes_reads_these_and_the_roots_alone(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first such model is drawn: the other columns are not needed to score."""
    names = [f"a{n}" for n in range(12)]
    columns = ", ".join(
        f"CASE WHEN hash(i, {n}) % 16 < {n + 1} THEN 'x' ELSE c END AS {name}"
        for n, name in enumerate(names)
    )
    con.execute(
        f"CREATE TABLE t AS SELECT {columns}, c FROM (SELECT i, 'xyz'[1 + i // 16 % 3] AS c "
        "FROM range(48000) r(i))"
    )
    first = len(rooted_tables.WEIGHTS) + 1  # after the fitted model
    monkeypatch.setattr(mixtures, "draw_mixture", lambda *_: first)
    attributes = tuple(Attribute(name, "categorical", tuple("xyz")) for name in names)
    forest = fit(
        con, "t", domain=Domain(attributes, "c", tuple("xyz")), recipe="rooted-tables", epsilon=2
    )
    assert len(forest.trees) == 1 + FEW[0]
    assert len(forest.used) == 2 + FEW[0]
    assert "a0" in {each.column for each in forest.used.values()}, "it says most"


def test_models_below_two_roots_learn_what_neither_root_shows_alone() -> None:
    found = models(exclusive_or())
    for model in found:
        ahead = (model.odds.start[:, 1] - model.odds.start[:, 0]).tolist()
        assert [odds > 1.5 for odds in ahead] == [False, True, True, False]
        assert [odds < -1.5 for odds in ahead] == [True, False, False, True]


@pytest.mark.parametrize("rows", [1, 300, 4000, 10**6])
def test_the_whole_budget_is_planned_for_any_number_of_rows(rows: int) -> None:
    recipe = find("rooted-tables")
    plan = recipe.plan(replace(recipe.request(public(), NANO), rows=rows))
    assert NANO * 0.999 < plan.epsilon <= NANO
    roots = plan.query("root")
    assert (len(roots.by_depth) if roots else 0) == {1: 0, 300: 1}.get(rows, 2)


def test_an_exclusive_or_is_learnt_and_one_of_the_models_drawn(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT x, y, z, 'c' || CAST((x = 'a') = (y = 'a') AS INTEGER) AS c "
        "FROM (SELECT ['a', 'b'][1 + i % 2] AS x, ['a', 'b'][1 + i // 2 % 2] AS y, "
        "['a', 'b', 'c'][1 + i // 4 % 3] AS z FROM range(4000) AS r(i))"
    )
    attributes = tuple(
        Attribute(name, "categorical", tuple(values), nullable=False)
        for name, values in (("x", "ab"), ("y", "ab"), ("z", "abc"))
    )
    forest = fit(
        con, "t", domain=Domain(attributes, "c", ("c0", "c1")), epsilon=1, recipe="rooted-tables"
    )
    assert any(line.startswith("root: permute-and-flip") for line in forest.guarantee.plan)
    assert any(line.startswith("mixture: permute-and-flip") for line in forest.guarantee.plan)
    corners = [{"x": x, "y": y, "z": "b"} for x in "ab" for y in "ab"]
    assert forest.votes(corners).argmax(axis=1).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("mixture", range(len(rooted_tables.WEIGHTS) + 1))
def test_a_smaller_weight_of_attributes_leaves_the_class_shares_as_they_are(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    monkeypatch: pytest.MonkeyPatch,
    mixture: int,
) -> None:
    """Where attributes say nothing, every mixture gives the shares of all rows."""
    con.execute(
        "CREATE TABLE t AS SELECT 'a' || i % 3 AS a, 'b' || i // 3 % 4 AS b, "
        "'c' || i // 12 % 2 AS c, CASE WHEN i // 24 % 10 < 3 THEN 'yes' ELSE 'no' END AS y "
        "FROM range(24_000) r(i)"
    )
    cells = {"a": 3, "b": 4, "c": 2}
    attributes = tuple(
        Attribute(name, "categorical", tuple(f"{name}{i}" for i in range(size)), nullable=False)
        for name, size in cells.items()
    )
    monkeypatch.setattr(mixtures, "draw_mixture", lambda *_: mixture)
    domain = Domain(attributes, "y", ("no", "yes"))
    forest = fit(con, "t", domain=domain, recipe="rooted-tables", epsilon=50)
    shares = forest.predict(con, "t").aggregate("avg(p_yes)").fetchall()
    assert shares[0][0] == pytest.approx(0.3, abs=0.01)
