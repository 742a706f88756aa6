"""Class means in one release: what a row changes, what is drawn and noised, what comes of it."""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from recorder import Call, record
from steps import encode, spending
from variants import some

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.engine.base import POINTS
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.errors import DpforestError, NotPrivateWarning
from dpforest_duckdb.learners import class_means
from dpforest_duckdb.learners.boosting import BOOSTING
from dpforest_duckdb.learners.class_means import (
    class_sums,
    product_sums,
    square_sums,
)
from dpforest_duckdb.learners.strongest_attribute import coarse, misclassified
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.discriminant import Moments, discriminant, noise_of_log_odds
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO, atto_delta
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.plan import COUNTS
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.selection import EXPONENTIAL, Mechanism
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.progress import unobserved
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.ours.auto import MEANS_OR_LOG_ODDS
from dpforest_duckdb.recipes.ours.constants import AMPLE, CLEAN
from dpforest_duckdb.recipes.strongest_query import STRONGEST
from dpforest_duckdb.request import TrainingContext
from dpforest_duckdb.scoring.score_sql import score_sql, share_names
from dpforest_duckdb.splits import choose
from dpforest_duckdb.splits.choose import draw_best
from dpforest_duckdb.splits.positions import (
    FEW_CELLS,
    REACH,
    blocks,
    has_window,
    positions,
    windows,
    worth,
)
from dpforest_duckdb.training import phases
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.tree import SCALE

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import generated

MIXED = (
    Attribute("number", "numeric", lower=0, upper=100),
    Attribute("grade", "categorical", tuple("abcde"), ordered=True),
    Attribute("two", "categorical", tuple("ab"), nullable=False),
    Attribute("three", "categorical", tuple("abc"), nullable=False),
    Attribute("four", "categorical", tuple("abc"), nullable=True),
    Attribute("many", "categorical", tuple("abcdef"), nullable=True),
)
NAMES = [attribute.name for attribute in MIXED]
LABELS = ("p", "q", "r")
DOMAIN = Domain(MIXED, "label", LABELS).bind(
    {**dict.fromkeys(NAMES, VARCHAR), "number": DOUBLE, "label": VARCHAR}
)
NUMBERS = (None, float("nan"), -1e9, 0.0, 10.0, 33.0, 50.0, 99.0, 100.0, 1e9)
Row = tuple[Any, ...]


def some_rows(rows: int, random: np.random.Generator) -> list[Row]:
    """Values of every kind: NULL, and those that the domain does not describe."""
    texts = ["a", "b", "c", "d", "e", "f", "elsewhere", None]
    return [
        (
            NUMBERS[random.integers(len(NUMBERS))],
            *(texts[random.integers(len(texts))] for _ in MIXED[1:]),
            LABELS[random.integers(len(LABELS))],
        )
        for _ in range(rows)
    ]


@dataclass(frozen=True)
class Figures:
    """All that is noised, or drawn by, before it is."""

    sums: Integers
    squares: Integers
    products: Integers
    windows: Integers
    strongest: int


def figures(con: duckdb.DuckDBPyConnection, units: Sequence[Sequence[Row]], k: int) -> Figures:
    """From a table in which at most k rows of a unit count."""
    kinds = ["number DOUBLE", *(f"{name} VARCHAR" for name in NAMES[1:]), "label VARCHAR"]
    con.execute(f"CREATE OR REPLACE TABLE t ({', '.join(kinds)}, who INTEGER)")
    rows = [(*row, who) for who, unit in enumerate(units) for row in unit]
    if rows:
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    engine, bounded = DuckDBEngine(con), PrivacyUnit("who", k)
    table = engine.table("t")

    def coded(domain: Domain) -> Any:
        return encode(engine, table, domain, bounded, trees=1, sample="all", salt=1)

    counted = coded(DOMAIN)
    private = [table[0] for table in counted.count_classes(0, 1)]
    found = {
        number: positions(attribute, (4, 19) if has_window(attribute) else None)
        for number, attribute in enumerate(DOMAIN.attributes)
    }
    noised: list[int] = []
    noise = SimpleNamespace(laplace=lambda figure, cost, bound: noised.append(figure[0]) or figure)
    tables = [table[0] for table in coded(coarse(DOMAIN)).count_classes(0, 1)]
    misclassified(tables, NANO, k, cast(Any, noise))
    return Figures(
        class_sums(private, found),
        square_sums(private, found),
        product_sums(counted, private, found),
        worth(private[0][: DOMAIN.attributes[0].proper].sum(axis=1), 20),
        int(noised[0]),
    )


@pytest.mark.parametrize("k", [1, 3])
def test_a_unit_more_changes_every_figure_by_its_sensitivity_at_most(
    con: duckdb.DuckDBPyConnection, k: int
) -> None:
    """By all of it, if its rows are alike and far from the middle; the bounds are tight."""
    random = np.random.default_rng(k)
    first = np.cumsum([0, *(size for a in DOMAIN.attributes for size in blocks(a))])[:-1]
    far: Row = (100.0, "e", "b", "c", None, "f", "q")
    added = [[far] * k, [(None,) * 6 + ("p",)] * k, some_rows(k, random), some_rows(k + 2, random)]
    added.append([(*far[:-1], "p")] * k)  # all attributes are wrong, if many rows are far
    most = Counter[str]()
    for units in ([], [some_rows(1 + i % 4, random) for i in range(12)], [[far] * k] * 9):
        before = figures(con, units, k)
        for unit in added:
            after = figures(con, [*units, unit], k)
            by_block = np.add.reduceat(abs(after.sums - before.sums), first, axis=1)
            changes = {
                "sums": by_block.max(axis=1).sum(),
                "squares": abs(after.squares - before.squares).max(),
                "products": abs(after.products - before.products).max(),
                "windows": (after.windows - before.windows).max(),
                "strongest": abs(after.strongest - before.strongest),
            }
            assert (after.windows >= before.windows).all(), "monotone"
            most |= Counter({name: int(change) for name, change in changes.items()})
    assert most == {
        "sums": k * REACH,
        "squares": k * REACH**2,
        "products": k * REACH**2,
        "windows": k,
        "strongest": k,
    }


@dataclass
class Spent:
    """What reached the mechanisms, and the accounts."""

    given: list[Call]
    accounts: list[Accountant]

    def by(self, mechanism: str) -> list[Call]:
        return [call for call in self.given if call.mechanism == mechanism]


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    found = Spent(record(monkeypatch, choose), [])

    class Kept(Accountant):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            found.accounts.append(self)

    monkeypatch.setattr(phases, "Accountant", Kept)
    return found


@pytest.mark.parametrize(("epsilon", "k"), [(0.2, 1), (9, 1), (9, 3)])
def test_the_noise_is_given_what_the_plan_says(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], spent: Spent, epsilon: float, k: int
) -> None:
    """Squares at a small ε, products at a large one."""
    con.execute(
        "CREATE TABLE t AS SELECT i % 71 AS x, i % 13 AS y, 'abcdefg'[1 + i % 7] AS z, "
        f"'pqr'[1 + i % 3] AS c, i // {k} AS u FROM range(900) AS r(i)"
    )
    numbers = [Attribute(name, "numeric", lower=0, upper=70, nullable=False) for name in "xy"]
    kinds = (*numbers, Attribute("z", "categorical", tuple("abcdefg"), nullable=False))
    forest = fit(
        con, "t", domain=Domain(kinds, "c", LABELS), recipe="class-means", epsilon=epsilon,
        privacy_unit="u", rows_per_unit=k,
    )  # fmt: skip
    (account,) = spent.accounts
    plan = account.plan
    costs = {query.purpose: query.by_depth[0] for query in plan.queries}
    assert [call.price for call in spent.by("laplace")] == [
        (costs[purpose], bound)
        for purpose, bound in (("rows", k), ("rows again", k), ("bounds", 2 * k))
        if purpose in costs
    ]
    drawn = [(costs["window"], k)] * 2
    if epsilon > 1:
        second = ([1] * 45, costs["products"], k * REACH**2)
    else:
        second = ([1] * 9, costs["squares"], k * REACH**2)
    if "mixture" in costs:
        drawn.append((costs["mixture"], k * POINTS))
    joint = [(list(call.blocks), *call.price) for call in spent.by("joint")]
    assert joint == [([1, 1, 7], costs["means"], k * REACH), second]
    assert [call.price for call in spent.by("exponents")] == drawn
    assert all(call.monotone for call in spent.by("exponents"))
    assert spending(account).epsilon == plan.epsilon <= epsilon * NANO
    assert plan.query("window").total == 2 * costs["window"]  # type: ignore[union-attr]
    assert forest.guarantee.plan == plan.lines()


@pytest.mark.parametrize(("epsilon", "k"), [(0.2, 1), (9, 1), (9, 3)])
def test_with_a_delta_the_noise_of_many_attributes_is_gaussian(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], spent: Spent, epsilon: float,
    k: int, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """And windows are drawn by the exponential mechanism, of which ε²/8 is known."""
    mechanisms, draw = list[Mechanism](), Mechanism.draw
    monkeypatch.setattr(
        Mechanism, "draw", lambda self, *given: mechanisms.append(self) or draw(self, *given)
    )
    names = [f"x{i}" for i in range(24)]
    columns = ", ".join(f"i * {3 + i} % 71 AS {name}" for i, name in enumerate(names))
    con.execute(
        f"CREATE TABLE t AS SELECT {columns}, 'pqr'[1 + i % 3] AS c, i // {k} AS u "
        "FROM range(3000) AS r(i)"
    )
    kinds = [Attribute(name, "numeric", lower=0, upper=70, nullable=False) for name in names]
    fit(
        con, "t", domain=Domain(tuple(kinds), "c", LABELS), recipe="class-means", epsilon=epsilon,
        delta=1e-5, privacy_unit="u", rows_per_unit=k,
    )  # fmt: skip
    (account,) = spent.accounts
    plan = account.plan
    assert plan.concentrated
    assert plan.fits(int(epsilon * NANO), atto_delta(1e-5))
    costs = {query.purpose: query.by_depth[0] for query in plan.queries}
    second = "products" if epsilon > 1 else "squares"
    figures = 24 * 25 // 2 if epsilon > 1 else 24
    assert [call.price for call in spent.by("gaussian")] == [
        (costs["means"], 24 * (k * REACH) ** 2),
        (costs[second], figures * (k * REACH**2) ** 2),
    ]
    assert not spent.by("joint")
    drawn = [(math.isqrt(8 * costs["window"]), k)] * 24
    if "mixture" in costs:
        drawn.append((costs["mixture"], k * POINTS))
    assert [call.price for call in spent.by("exponents")] == drawn
    assert mechanisms[:24] == [EXPONENTIAL] * 24
    window = plan.query("window")
    assert window is not None
    assert (window.total, window.measure) == (24 * costs["window"], "ρ")


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.0000001"])
def test_a_budget_that_is_too_small_is_refused_with_a_delta_too(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, epsilon: str
) -> None:
    names = [f"x{i}" for i in range(20)]
    con.execute(
        f"CREATE TABLE t AS SELECT {', '.join(f'i AS {name}' for name in names)}, 'p' AS c "
        "FROM range(9) AS r(i)"
    )
    kinds = [Attribute(name, "numeric", lower=0, upper=70) for name in names]
    with pytest.raises(DpforestError, match="epsilon is too small"):
        prepare(
            con, "t", domain=Domain(tuple(kinds), "c", LABELS), recipe="class-means",
            privacy_unit="row", epsilon=epsilon, delta="0.00001", ledger=tmp_path / "ledger",
        )  # fmt: skip


def test_a_huge_delta_debits_no_more_than_was_asked_for(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """A choice in a plan in ρ has an ε of its own, which may be above the requested one."""
    names = [f"x{i}" for i in range(20)]
    columns = ", ".join(f"i % {3 + i} AS {name}" for i, name in enumerate(names))
    con.execute(f"CREATE TABLE t AS SELECT {columns}, 'pqr'[1 + i % 3] AS c FROM range(9) AS r(i)")
    kinds = [Attribute(name, "numeric", lower=0, upper=70) for name in names]
    run = prepare(
        con, "t", domain=Domain(tuple(kinds), "c", LABELS), recipe="class-means",
        privacy_unit="row", epsilon="0.001", delta="0.01", ledger=tmp_path / "ledger",
    )  # fmt: skip
    assert run.plan.concentrated
    assert run.plan.epsilon > run.request.epsilon
    assert run.cost == run.request.epsilon == NANO // 1000


def test_a_delta_is_used_where_it_makes_less_noise() -> None:
    """Gaussian noise grows with the root of the number of attributes, joint noise linearly."""
    used = []
    for attributes in (2, 8, 16, 64):
        kinds = [Attribute(f"x{i}", "numeric", lower=0, upper=100) for i in range(attributes)]
        domain = Domain(tuple(kinds), "c", tuple("abcdefgh"))
        request = find("class-means").request(domain, NANO, delta=ATTO // 10**5)
        request = find("class-means").sized(request, np.full(8, 10_000))
        plan = find("class-means").plan(request)
        assert plan.query("products")
        used.append(plan.concentrated)
    assert used == [False, False, True, True]


@pytest.mark.parametrize("cells", [9, 33, 251])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_window_inside_wide_bounds_covers_most_rows(cells: int, share: float) -> None:
    """And little else: at most twice as many cells as the rows are in, and one."""
    within = max(1, int(share * cells))
    for first in (0, (cells - within) // 2, cells - within):
        counts = np.zeros(cells, dtype=np.int64)
        counts[first : first + within] = 2_000 // within
        start, end = windows(cells)
        drawn = draw_best(worth(counts, 2_000), NANO, 1, SecureBits())
        window = slice(start[drawn], end[drawn])
        assert counts[window].sum() >= 0.7 * counts.sum()
        assert end[drawn] - start[drawn] <= 2 * within + 1


def test_only_numbers_of_more_than_a_few_cells_have_a_window() -> None:
    few = Attribute("few", "numeric", lower=0, upper=1, bins=FEW_CELLS)
    domain = Domain((*MIXED, few), "label", LABELS)
    bound = domain.bind(
        {**dict.fromkeys(NAMES, VARCHAR), "number": DOUBLE, "few": DOUBLE, "label": VARCHAR}
    )
    assert [a.name for a in bound.attributes if has_window(a)] == ["number"]
    recipe = find("class-means")
    for attributes, times in ((bound.attributes, 1), (bound.attributes[1:], 0)):
        plan = recipe.plan(recipe.request(replace(bound, attributes=attributes), NANO))
        window = plan.query("window")
        assert (window.times if window else 0) == times


def test_positions_ascend_in_the_window_and_are_0_without_a_value() -> None:
    number, grade, *others = DOMAIN.attributes
    found = positions(number, (4, 19))[:, 0]
    assert (found[:5] == -REACH).all()
    assert (found[18:-1] == REACH).all()
    assert len(set(np.diff(found[4:19]).tolist())) <= 2, "equal steps, but for rounding"
    assert found[number.null] == 0
    assert positions(number, (7, 8)).any() == np.False_, "one cell has no order"
    assert positions(grade)[:, 0].tolist() == [-100, -50, 0, 50, 100, 0, 0]
    for attribute in others:
        apart = positions(attribute)[list(attribute.expected)]
        assert len(np.unique(apart, axis=0)) == len(attribute.expected)
        assert not positions(attribute)[attribute.other].any()


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


@pytest.mark.parametrize("rows", [500, 10**6])
@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
def test_the_stated_noise_is_the_noise_that_is_there(rows: int) -> None:
    """Of squares if rows are few, and of products if they are many."""
    recipe = find("class-means")
    request = recipe.request(DOMAIN, NANO, rows_per_unit=2, rows=rows)
    account = Accountant(recipe.plan(request))
    context = SimpleNamespace(
        request=request, accountant=account, randomness=Randomness.seeded(rows)
    )
    own = [size for attribute in DOMAIN.attributes for size in blocks(attribute)]
    pairs = sum(own) * (sum(own) + 1) // 2
    second = ("products", [1] * pairs) if rows > 10**4 else ("squares", [1] * sum(own))
    for purpose, of_blocks in (("means", own), second):
        query = account.plan.query(purpose)
        assert query is not None
        nothing = np.zeros((3_000, sum(of_blocks)), dtype=np.int64)
        reach = REACH if purpose == "means" else REACH**2
        released = class_means._release(nothing, of_blocks, reach, purpose, cast(Any, context))
        there = np.sqrt((released.noisy**2).mean(axis=0))
        assert (there / released.deviation).min() > 0.8
        assert (there / released.deviation).max() < 1.25
        assert recipe.learner.deviation(query, request) == pytest.approx(released.deviation.max())


def test_products_are_released_from_where_their_noise_is_small_enough() -> None:
    """The noise of the plan, in parts of all rows. Otherwise a weight is chosen, from AMPLE on."""
    recipe = find("class-means")
    columns = {f"x{i}": DOUBLE for i in range(16)}
    attributes = tuple(Attribute(name, "numeric", lower=0, upper=1) for name in columns)
    domain = Domain(attributes, "c", tuple("abc")).bind(columns | {"c": VARCHAR})
    request = recipe.request(domain, NANO, rows=10**6)
    query = recipe.plan(request).query("products")
    assert query is not None
    enough = math.ceil((recipe.learner.deviation(query, request) or 0) / CLEAN)
    assert recipe.plan(replace(request, rows=enough)).query("products")
    assert not recipe.plan(replace(request, rows=enough - 1)).query("products")

    def purposes(rows: int) -> list[str]:
        return [query.purpose for query in recipe.plan(replace(request, rows=rows)).queries]

    few = [*COUNTS, "window", "squares", "mixture", "means"]
    assert purposes(AMPLE) == few != purposes(enough)
    assert purposes(AMPLE - 1) == [*COUNTS, "window", "squares", "means"]
    assert "products" not in purposes(0)  # before the number of rows is known


def test_pairs_of_very_many_positions_are_not_summed() -> None:
    """Each of 300 values has a position."""
    values = tuple(f"v{n}" for n in range(300))
    domain = Domain((Attribute("x", "categorical", values),), "c", tuple("abc"))
    recipe = find("class-means")
    request = recipe.request(domain.bind({"x": VARCHAR, "c": VARCHAR}), NANO, rows=10**9)
    assert recipe.plan(request).query("squares")
    assert not recipe.plan(request).query("products")


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
    unit = PrivacyUnit("row")
    rows = encode(engine, engine.table("t"), domain, unit, trees=1, sample="all", salt=1)
    private = [table[0] for table in rows.count_classes(0, 1)]
    sure = 10**5 * NANO
    request = replace(
        boosted.request(domain, sure, delta=delta, rows=4_000),
        histogram=tuple(private[0].sum(axis=0).tolist()),
    )
    account = Accountant(boosted.plan(request), sure, delta)
    with pytest.warns(NotPrivateWarning):
        randomness = Randomness.seeded(1)
    context = TrainingContext(boosted, request, account, randomness, unobserved)
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


@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
def test_with_a_delta_sums_and_products_have_the_noise_of_their_l2_sensitivity() -> None:
    """A row moves each of n figures by up to 1, so √n together; k rows of a unit by k·√n."""
    domain, k = numbers(2), 3
    request = find("boosted").request(
        domain, NANO, delta=ATTO // 10**5, rows_per_unit=k, rows=10**6
    )
    account = Accountant(find("boosted").plan(request))
    context = SimpleNamespace(request=request, accountant=account, randomness=Randomness.seeded(5))
    for purpose, figures, reach in (("means", 3, REACH), ("products", 6, REACH**2)):
        query = account.plan.query(purpose)
        assert query is not None
        assert query.measure == "ρ"
        stated = k * math.sqrt(figures * ATTO / query.total / 2)
        nothing = np.zeros((3_000, figures), dtype=np.int64)
        blocks = [1] * figures
        released = class_means._release(nothing, blocks, reach, purpose, cast(Any, context))
        there = np.sqrt((released.noisy**2).mean(axis=0))
        assert there == pytest.approx(stated, rel=0.1)
        assert released.deviation == pytest.approx(stated)
        assert BOOSTING.deviation(query, request) == pytest.approx(stated)


def numbers(classes: int) -> Domain:
    kinds = [Attribute(f"x{i}", "numeric", lower=0, upper=100) for i in range(3)]
    text = Attribute("text", "categorical", tuple("abcdef"))
    return Domain((*kinds, text), "c", tuple(f"c{i}" for i in range(classes)))


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
    assert forest.link == "softmax"
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
    shares = np.array([[row[name] for name in share_names(forest)] for row in found])
    assert np.isfinite(shares).all()
    assert shares == pytest.approx(forest.probabilities(votes))
    assert evaluate(con, forest, "seen", ledger=tmp_path / "ledger").rows == min(rows, 60) + 1


def test_attributes_of_one_value_each_leave_the_frequencies_of_the_classes(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute("CREATE TABLE t AS SELECT 'a' AS x, 'c' || (i % 3) AS c FROM range(90) AS r(i)")
    only = Attribute("x", "categorical", ("a",), nullable=False)
    forest = fit(con, "t", domain=Domain((only,), "c", ("c0", "c1", "c2")), recipe="class-means")
    assert len(forest.trees) == 1


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


@pytest.fixture(scope="module")
def weak() -> Iterator[tuple[duckdb.DuckDBPyConnection, Domain]]:
    """Seven classes, 18 weak numbers, units of three rows; one attribute says nearly all."""
    case = generated.many_weak(1_200)
    with duckdb.connect() as con:
        case.write(con, "weak")
        con.execute("ALTER TABLE weak ADD COLUMN u INTEGER")
        con.execute("UPDATE weak SET u = rowid // 3")
        con.execute("CREATE TABLE one AS SELECT *, class * (rowid % 5 > 0)::INT AS same FROM weak")
        yield con, case.domain


@pytest.mark.parametrize(("table", "then"), [("weak", "means"), ("one", "tables")])
def test_auto_takes_class_means_unless_one_attribute_suffices(
    weak: tuple[duckdb.DuckDBPyConnection, Domain], fit: Callable[..., Forest], spent: Spent,
    tmp_path: Path, table: str, then: str,
) -> None:  # fmt: skip
    con, domain = weak
    if table == "one":
        same = Attribute("same", "numeric", lower=0, upper=6)
        domain = replace(domain, attributes=(*domain.attributes, same))
    forest = fit(con, table, domain=domain, epsilon=3, privacy_unit="u", rows_per_unit=3)
    (account,) = spent.accounts
    purposes = [query.purpose for query in account.plan.queries]
    assert then in purposes
    assert ("means" in purposes) == (table == "weak")
    assert forest.guarantee.plan == account.plan.lines()
    costs = {purpose: account.plan.query(purpose) for purpose in purposes}
    assert STRONGEST in purposes
    first = [purpose for purpose in purposes if purpose in (*COUNTS, "bounds", STRONGEST)]
    assert [call.price for call in spent.by("laplace")[: len(first)]] == [
        (costs[purpose].total, 3 * (18 if purpose == "bounds" else 1)) for purpose in first
    ]
    assert spending(account).epsilon <= 3 * NANO
    assert evaluate(con, forest, table, ledger=tmp_path / "ledger").accuracy > 0.7


def test_a_number_that_equals_one_of_many_classes_suffices() -> None:
    same = Attribute("same", "numeric", lower=0, upper=19, type=DOUBLE)
    domain = Domain((same,), "c", tuple(f"c{i}" for i in range(20)))
    (attribute,) = coarse(domain.bind({"same": DOUBLE, "c": VARCHAR})).attributes
    cells = np.searchsorted(np.array(attribute.edges, dtype=float), np.arange(20))
    table = np.zeros((attribute.cells, 20), dtype=np.int64)
    np.add.at(table, (cells, np.arange(20)), 100)
    assert misclassified([table], NANO, 1, ExactNoise(SecureBits())) < 1_000


def test_with_a_delta_class_means_are_taken_where_boosting_does_not_pay(
    weak: tuple[duckdb.DuckDBPyConnection, Domain], fit: Callable[..., Forest], spent: Spent
) -> None:
    con, domain = weak
    con.execute("CREATE TABLE again AS FROM weak")  # with a ledger of its own
    forest = fit(con, "again", domain=domain, epsilon=2, delta=1e-5)
    (account,) = spent.accounts
    assert account.plan.query(STRONGEST)
    assert account.plan.query("means")
    assert account.plan.concentrated
    assert account.plan.fits(2 * NANO, atto_delta(1e-5))
    assert forest.guarantee.delta == "0.00001"


@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
@pytest.mark.parametrize("epsilon", [3_000, NANO // 1000, NANO, 100 * NANO])
def test_no_plan_passes_its_budget_whatever_the_rows_are(epsilon: int, delta: int) -> None:
    """Of class means, and of the alternative after the query that decides between them."""
    recipe, names = MEANS_OR_LOG_ODDS, [f"x{i}" for i in range(3 if delta == 0 else 30)]
    text = numbers(5).attributes[-1]
    kinds = [Attribute(name, "numeric", lower=0, upper=100) for name in names]
    domain = Domain((*kinds, text), "c", numbers(5).classes)
    domain = domain.bind(dict.fromkeys(names, DOUBLE) | {"text": VARCHAR, "c": VARCHAR})
    concentrated = set()
    for k in (1, 5):
        request = recipe.request(domain, epsilon, rows_per_unit=k, delta=delta)
        for rows in (-50, 0, 1, 40, 10**4, 10**12):
            classes = np.full(5, rows)
            _, chosen = recipe.chosen(request, classes)
            for then, asked in ((recipe, chosen), recipe.alternative(chosen)):
                plan = then.plan(then.sized(asked, classes))
                concentrated.add(plan.concentrated)
                assert plan.fits(epsilon, delta)
                assert plan.query(STRONGEST) == chosen.first[-1]
                assert chosen.first[-1].total <= epsilon // 10
                assert min(cost for query in plan.queries for cost in query.by_depth) > 0
    assert concentrated == ({True, False} if delta else {False})


def alternated(con: duckdb.DuckDBPyConnection, ledger: Path, rows: int, **options: Any) -> Forest:
    """Trained on rows of which "text" gives the class."""
    con.execute(
        "CREATE TABLE t AS SELECT i % 90 AS x0, i % 7 AS x1, i % 31 AS x2, "
        f"'abcdef'[i % 5 + 1] AS text, 'c' || i % 5 AS c, i // 5 AS u FROM range({rows}) AS r(i)"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        run = prepare(
            con, "t", domain=numbers(5), recipe="class-means", seed=1, ledger=ledger, **options
        )
    return replace(run, recipe=MEANS_OR_LOG_ODDS).execute()


@pytest.mark.parametrize(("rows", "epsilon"), [(0, 0.001), (3, 1), (600, 0.0001)])
def test_few_rows_and_a_tiny_budget_end_no_run(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, spent: Spent, rows: int, epsilon: float
) -> None:
    options = {"epsilon": epsilon, "privacy_unit": "u", "rows_per_unit": 5}
    forest = alternated(con, tmp_path / "ledger", rows, **options)
    (account,) = spent.accounts
    assert spending(account).epsilon == account.plan.epsilon <= epsilon * NANO
    assert forest.guarantee.plan == account.plan.lines()
    first = account.plan.queries[:3]
    assert [query.purpose for query in first] == [*COUNTS, STRONGEST]
    assert sum(query.total for query in first[:2]) <= epsilon * NANO / 10
    assert [call.price for call in spent.by("laplace")[:3]] == [(q.total, 5) for q in first]
