"""Bounds that are far too wide: the check, the windows, what they cost, and what they gain."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorder import NoNoise, record
from shell import dpforest
from steps import seeded
from variants import some

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import (
    DATE,
    DOUBLE,
    INTEGER,
    VARCHAR,
    ColumnType,
    column_type,
)
from dpforest_duckdb.domain.values import ordinal
from dpforest_duckdb.learners import private_bounds
from dpforest_duckdb.learners.candidate_bins import GRID, in_windows
from dpforest_duckdb.learners.private_bins import FINEST
from dpforest_duckdb.learners.private_bounds import (
    BOUNDS_TURNS,
    Search,
    bounds_window_utilities,
    clear_check,
    clear_window,
)
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.gaussian_dp import drawn_cost
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.privacy.plan import LAPLACE, ROW_COUNTS, Plan
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP, Mechanism
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.bounds_queries import window, with_check, with_windows
from dpforest_duckdb.recipes.ours.greedy_tree import GREEDY_TREE
from dpforest_duckdb.recipes.plans import half_to_leaves
from dpforest_duckdb.recipes.recipe import Adaptation
from dpforest_duckdb.recipes.row_count_queries import left, preliminary_queries
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits import choose
from dpforest_duckdb.training.prepare import prepare

HUGEINT = column_type("HUGEINT")
MEASURES = (PURE_DP, GAUSSIAN_DP)
OURS = (
    "log-odds", "class-means", "tree-beside-sums", "joint-tables", "rooted-tables", "boosted"
)  # fmt: skip


def numbers(*bounds: tuple[object, object], kind: object = DOUBLE) -> Domain:
    """Numeric attributes a0, a1, … with these bounds, and two classes."""
    attributes = tuple(
        Attribute(f"a{i}", "numeric", lower=low, upper=high)  # type: ignore[arg-type]
        for i, (low, high) in enumerate(bounds)
    )
    types = {a.name: kind for a in attributes}
    return Domain(attributes, "c", ("p", "q")).bind({**types, "c": VARCHAR})  # type: ignore[dict-item]


def counted(values: np.ndarray, bins: Domain) -> list[Integers]:
    """The rows in the cells of each attribute, which all have the same values."""
    return [
        np.bincount(np.searchsorted(np.array(a.edges, dtype=float), values), minlength=a.cells)
        for a in bins.attributes
    ]


@pytest.fixture
def randomness() -> Randomness:
    return seeded(3)


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_a_unit_more_changes_the_figure_of_the_check_by_its_sensitivity(
    rows_per_unit: int,
) -> None:
    """Its rows may be in the fullest bin of every attribute."""
    noise: Any = NoNoise()
    bins = private_bounds.public_bins(numbers((0, 1), (0, 10), (-5, 5)))
    counts = counted(np.full(50, 0.2), bins)
    more = [table + rows_per_unit * (table == table.max()) for table in counts]
    check = private_bounds.too_wide
    assert check(bins, counts, 99, NANO, rows_per_unit, noise)
    assert check(bins, more, 99, NANO, rows_per_unit, noise)
    assert not check(bins, counts, 101, NANO, rows_per_unit, noise)
    before, after, _ = noise.given
    assert before.cost == NANO
    assert after.private.sum() - before.private.sum() == before.bound == 3 * rows_per_unit


def test_rows_without_a_number_are_in_no_bin_of_the_check() -> None:
    """However many they are, bounds are not too wide for them."""
    noise: Any = NoNoise()
    bins = private_bounds.public_bins(numbers((0, 1)))
    counts = np.zeros(bins.attributes[0].cells, dtype=np.int64)
    counts[[0, -1]] = 10, 90
    assert not private_bounds.too_wide(bins, [counts], 100, NANO, 1, noise)


def test_the_check_errs_by_a_quarter_of_the_rows_in_one_case_of_a_hundred() -> None:
    """Laplace noise is above x scales in e^(-x) / 2 of all cases."""
    assert np.exp(-clear_check() / 4) / 2 == pytest.approx(0.01)


def test_one_of_all_windows_is_drawn_for_the_best_in_one_case_of_a_hundred() -> None:
    """Each with e^(-x) if it has x scales of the noise fewer; 32 bins have 32 + 31 + 15 + … + 1."""
    windows = 32 + 31 + 15 + 7 + 3 + 1
    assert len(bounds_window_utilities(np.zeros(32, dtype=np.int64), 0)) == windows
    assert windows * np.exp(-clear_window() / 2) == pytest.approx(0.01)


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    where=st.integers(0, 39),
    handicap=st.integers(0, 20),
)
def test_a_row_more_adds_at_most_one_to_the_utility_of_a_window(
    counts: list[int], where: int, handicap: int
) -> None:
    """It takes nothing away from any, so the draw may be that of monotone utilities."""
    more = list(counts)
    more[where % len(counts)] += 1
    changes = bounds_window_utilities(np.array(more), handicap) - bounds_window_utilities(
        np.array(counts), handicap
    )
    assert set(changes.tolist()) <= {0, 1}
    assert changes[-1] == 1, "the last window holds all rows"


@pytest.mark.parametrize(
    ("of_numbers", "of_others", "rows", "checked"),
    [
        (2, 1, 10**6, True),
        (2, 2, 10**6, False),  # half are numbers, not most
        (20, 0, 4000, True),
        (20, 0, 2500, False),  # enough for the check and for one turn of windows, not for four
        (2, 0, 1500, False),  # enough for windows, not for the check
    ],
)
def test_bounds_are_checked_if_most_attributes_are_numbers_and_rows_allow_it(
    of_numbers: int, of_others: int, rows: int, checked: bool
) -> None:
    public = numbers(*[(0, 1000)] * of_numbers)
    others = [Attribute(f"o{i}", "categorical", ("x", "y"), type=VARCHAR) for i in range(of_others)]
    public = replace(public, attributes=(*public.attributes, *others))
    request = find("log-odds").request(public, NANO)
    found = with_check(request, rows, PURE_DP)
    assert (Plan(found.preliminary).query(Purpose.BOUNDS) is not None) is checked


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_units_of_three_rows_need_three_times_the_rows_for_the_same_queries(
    measure: Measure,
) -> None:
    """The check and the windows then cost the same, which only in ε is taken off ε."""
    for rows in (4_000, 10_000):
        requests = []
        for k in (1, 3):
            asked = find("boosted").request(
                numbers(*[(0, 1000)] * 20), NANO, rows_per_unit=k, delta=ATTO // 10**5
            )
            asked = with_check(asked, k * rows, measure)
            further = with_windows(asked, 1, 20, k * rows, measure)
            assert further is not None
            requests.append(further)
        one, three = requests
        assert one.preliminary == three.preliminary
        assert (one.epsilon < NANO) == (measure == PURE_DP)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_windows_are_drawn_at_their_cost(
    monkeypatch: pytest.MonkeyPatch, randomness: Randomness, measure: Measure
) -> None:
    """In μ² by the exponential mechanism; the handicap of longer windows is in noise scales."""
    given, mechanisms, draw = record(monkeypatch, choose), list[Mechanism](), Mechanism.draw

    def drawn(mechanism, *rest):  # type: ignore[no-untyped-def]
        mechanisms.append(mechanism)
        return draw(mechanism, *rest)

    handicaps: list[int] = []

    def rated(counts: Integers, handicap: int) -> Integers:
        handicaps.append(handicap)
        return bounds_window_utilities(counts, handicap)

    monkeypatch.setattr(Mechanism, "draw", drawn)
    monkeypatch.setattr(private_bounds, "bounds_window_utilities", rated)
    search = Search.start(numbers((0, 1)))
    cost = NANO if measure == PURE_DP else drawn_cost(NANO)
    search.turn(counted(np.full(9, 0.2), search.bins), cost, measure, 2, randomness.bits)
    assert [(*call.price, call.monotone) for call in given] == [(NANO, 2, True)]
    assert mechanisms == [PERMUTE_AND_FLIP if measure == PURE_DP else EXPONENTIAL]
    assert handicaps == [2 * 2], "two noise scales, which grow with the rows of a unit"


def searched(public: Domain, values: np.ndarray, randomness: Randomness) -> Domain:
    """The domain after all turns, with as much noise as is allowed at most."""
    search = Search.start(public)
    cost = int(clear_window() * NANO / max(len(values), 1))
    for _ in range(BOUNDS_TURNS):
        if search.open:
            counts = counted(values, search.bins)
            search = search.turn(counts, cost, PURE_DP, 1, randomness.bits)
    return search.domain


@pytest.mark.parametrize("wider", [1, 10, 1000, 1_000_000])
def test_narrower_bounds_are_found_however_wide_the_public_ones_are(
    randomness: Randomness, wider: int
) -> None:
    values = np.random.default_rng(0).normal(300, 1, 5000)
    public = numbers((300 - 40 * wider, 300 + 30 * wider), (0, 310 * wider))
    for attribute in searched(public, values, randomness).attributes:
        low, high = float(attribute.lower), float(attribute.upper)  # type: ignore[arg-type]
        assert high - low < 30
        assert ((low <= values) & (values <= high)).mean() > 0.7


@pytest.mark.parametrize("values", [[], [7.0], [7.0] * 3000], ids=["none", "one", "one value"])
def test_rows_of_one_value_leave_a_usable_domain(
    randomness: Randomness, values: list[float]
) -> None:
    public = numbers((0, 1e9), (0, 8), (-1e-300, 1e300))
    for attribute in searched(public, np.array(values), randomness).attributes:
        assert attribute.edges
    if len(values) > 1:
        assert searched(public, np.array(values), randomness) == public


@pytest.mark.parametrize(
    ("bounds", "kind"),
    [
        ((0, 1e-318), DOUBLE),
        ((-1e-321, 1e-310), DOUBLE),
        ((0, 1e-300), DOUBLE),
        ((0, 2.0**125), HUGEINT),
        ((2**125 - 2**90, 2.0**125), HUGEINT),
        ((1 - 2.0**-45, 1.0), DOUBLE),
    ],
)
def test_whatever_is_found_can_be_cut(
    randomness: Randomness, bounds: tuple[float, float], kind: ColumnType
) -> None:
    """The budget is spent by then. Floats near the bounds are as close as floats can be."""
    public = numbers(bounds, kind=kind)
    for value in (*bounds, 0.3 * float(bounds[1])):
        (found,) = searched(public, np.full(999, float(value)), randomness).attributes
        for bins in (2, 4, 32, GRID, FINEST):
            assert found.recut(bins).proper <= bins + 1
        assert in_windows(replace(public, attributes=(found.recut(4),)), public).options
    for first, end in ((0, 1), (30, 32), (0, 32)):
        end = min(end, public.attributes[0].proper)
        inside = private_bounds._inside(public.attributes[0], min(first, end - 1), end)
        assert inside is None or inside.recut(FINEST).edges


def test_bounds_of_whole_numbers_and_dates_stay_of_their_kind(randomness: Randomness) -> None:
    few = np.repeat([4001, 4002, 4003, 4004], 500)
    (whole,) = searched(numbers((0, 10**6), kind=INTEGER), few, randomness).attributes
    assert all(isinstance(edge, int) for edge in whole.edges)
    assert len({*np.searchsorted(whole.edges, few)}) == 4, "each has a bin of its own"
    since = (dt.date(2020, 3, 1) - dt.date(1970, 1, 1)).days
    days = since + np.arange(600) % 30
    public = numbers((dt.date(1, 1, 1), dt.date(9999, 12, 31)), kind=DATE)
    (date,) = searched(public, days, randomness).attributes
    assert len({*np.searchsorted(date.edges, days)}) > 9
    assert date.text(date.edges[0]).count("-") == 2


@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
@pytest.mark.parametrize("recipe", OURS)
def test_whatever_is_asked_of_bounds_fits_into_the_budget(recipe: str, delta: int) -> None:
    """The check costs 1 % of ε or μ² at most; windows cost half of the rest at most."""
    chosen = find(recipe)
    request = chosen.request(numbers(*[(0, 1)] * 12), NANO, delta=delta)
    few = adaptation.adapted(chosen, request, np.array([200, 200]))
    assert few.plan.query(Purpose.BOUNDS) is None, "400 rows are too few"
    for rows in (2_000, 10_000, 10**15):
        classes = np.array([rows // 2, rows // 2])
        found = adaptation.adapted(chosen, request, classes)
        asked, plan = found.unsized, found.plan
        check = plan.query(Purpose.BOUNDS)
        measure = chosen.adaptation.measure(asked)
        assert check is not None
        spent, whole = check.total, NANO
        if measure == GAUSSIAN_DP:
            spent, whole = check.squared_mu, request.squared_mu
        assert whole // 100 // 101 < spent <= whole // 100
        noise = laplace_deviation(check.total, 12 * 5)
        assert check.count_noise(5) == noise, "a row is in the fullest bin of each number"
        for turn in range(1, BOUNDS_TURNS + 1):
            further = with_windows(asked, turn, 12, rows, measure)
            if further is None:
                break
            asked = further
            before, plan = plan, chosen.plan(adaptation.sized(chosen, asked, classes))
            assert plan.fits(NANO, delta)
            asked_before = asked.preliminary[:-1]
            assert plan.queries[: len(asked.preliminary)] == asked.preliminary
            assert before.queries[: len(asked_before)] == asked_before, "what was asked stays"
            assert plan.query(window(turn)) is not None
        purposes = [query.purpose for query in asked.preliminary]
        first = purposes.index(Purpose.BOUNDS)
        assert purposes[:first] == list(ROW_COUNTS)[: 1 if rows > 10**6 else 2]
        windows = [query.total for query in asked.preliminary[first + 1 :]]
        assert 0 < sum(windows) <= whole / 2


def test_recipes_without_numbers_to_cut_ask_nothing_of_bounds() -> None:
    domain = numbers((0, 1))
    binned = replace(domain, attributes=(replace(domain.attributes[0], bins=3),))
    request = find("auto").request(binned, NANO)
    found = adaptation.adapted(find("auto"), request, np.array([10**6, 10**6]))
    assert found.plan.query(Purpose.BOUNDS) is None


def wide(con: duckdb.DuckDBPyConnection, value: str, rows: int, more: str | None = None) -> Domain:
    """A table w whose classes divide at 300.5; bounds are a thousand times too wide."""
    con.execute(f"CREATE TABLE w (a0 DOUBLE, {more + ',' if more else ''} c VARCHAR)")
    con.execute(
        f"INSERT INTO w SELECT {value}, CASE WHEN i % 100 < 50 THEN 'p' ELSE 'q' END "
        f"FROM range({rows}) r(i)"
    )
    return Domain((Attribute("a0", "numeric", lower=0, upper=1000),), "c", ("p", "q"))


@pytest.mark.parametrize("delta", ["0", "1e-5"])
def test_a_forest_sees_through_bounds_that_are_far_too_wide(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], delta: str
) -> None:
    domain = wide(con, "300 + i % 100 / 100.0", 6000)
    forest = fit(con, "w", domain=domain, epsilon=1, delta=delta)
    assert any(line.startswith("bounds window 2") for line in forest.guarantee.plan)
    sql = forest.to_sql("w").rstrip().removesuffix(";")
    (right,) = con.execute(f"SELECT avg((prediction = c)::INT) FROM ({sql})").fetchall()[0]
    assert right > 0.9


@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
@pytest.mark.parametrize("bounds", [(0, 1000), (300, 301)])
def test_a_recipe_whose_size_stores_no_classes_can_ask_for_narrower_bounds(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, bounds: tuple[int, int]
) -> None:
    """The noisy number of rows does not come from the request that the recipe sizes."""

    def plan(request: Request) -> Plan:
        rest = replace(request, epsilon=left(request, PURE_DP))
        own = half_to_leaves(PERMUTE_AND_FLIP, LAPLACE, by="Gini")(rest)
        return Plan((*preliminary_queries(request), *own.queries))

    size = GREEDY_TREE.adaptation.size
    asking = replace(GREEDY_TREE, plan=plan, adaptation=Adaptation(size, private_bounds=True))
    (number,) = wide(con, "300 + i % 100 / 100.0", 6000).attributes
    number = replace(number, lower=bounds[0], upper=bounds[1])
    domain = Domain((number,), "c", ("p", "q"))
    run = prepare(
        con, "w", epsilon=1, domain=domain, recipe="greedy-tree", seed=1, privacy_unit="row",
        ledger=tmp_path / "l",
    )  # fmt: skip
    forest = replace(run, recipe=asking, plan=asking.whole_plan(run.request)).execute()
    asked = [line.split(":")[0] for line in forest.guarantee.plan]
    assert Purpose.BOUNDS in asked
    assert (window(2) in asked) == (bounds == (0, 1000)), "only where they are far too wide"
    assert len(forest.trees[0].kind) > 2**3, "the depth follows from thousands of rows"


@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
@some(("epsilon", "counts"), [(1, 2), (10, 1)], keep=1)
def test_a_run_asks_of_bounds_what_its_plan_says(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    delta: int,
    epsilon: int,
    counts: int,
) -> None:
    """With the sensitivities of two rows per unit, and nothing that is not in the plan.

    At a large ε the rows are counted only once.
    """
    domain = wide(con, "300 + i % 100 / 100.0, i // 2", 8000, "u INTEGER")
    given = record(monkeypatch, choose)
    run = prepare(
        con, "w", epsilon=epsilon, delta=delta / ATTO, domain=domain, seed=1, privacy_unit="u",
        rows_per_unit=2, ledger=tmp_path / "l",
    )  # fmt: skip
    plan = run.execute().guarantee.plan
    first = [line for line in plan if line.split(":")[0] in (*ROW_COUNTS, Purpose.BOUNDS)]
    assert [line.split(":")[0] for line in first] == [*ROW_COUNTS[:counts], Purpose.BOUNDS]
    assert [call.price for call in given[: len(first)]] == [
        (Fraction(line.split(" = ")[1]) * NANO, 2) for line in first
    ]
    assert given[0].cost == epsilon * NANO // 400
    turns = [line for line in plan if line.startswith("bounds window")]
    windows = given[len(first) : len(first) + len(turns)]
    assert len(turns) > 1
    assert [call.bound for call in windows] == [2] * len(turns)
    shown = [Fraction(line.split(" = ")[1]) for line in turns]
    for call, cost in zip(windows, shown, strict=True):
        paid = drawn_cost(call.cost) / ATTO if " μ²" in turns[0] else call.cost / NANO
        assert paid == pytest.approx(float(cost), rel=0.01)


@some(("value", "rows"), [("NULL", 500), ("7", 500), ("7", 1), ("7", 0)], keep=2)
def test_tables_without_any_information_get_a_forest(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], value: str, rows: int
) -> None:
    forest = fit(con, "w", domain=wide(con, value, rows), epsilon=9999)
    assert any(line.startswith(Purpose.BOUNDS) for line in forest.guarantee.plan)


@pytest.mark.parametrize(
    ("usual", "lower", "upper"),
    [
        ("DATE '0001-01-01'", dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        ("1e9", 1e9, 1e9 + 0.001),
    ],
)
def test_windows_too_narrow_for_a_type_leave_its_public_bounds(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    usual: str,
    lower: object,
    upper: object,
) -> None:
    """At the first day of DATE, and where floating-point numbers are too far apart."""
    con.execute(f"CREATE TABLE t AS SELECT {usual} AS x, i % 2 AS y FROM range(6000) r(i)")
    public = Domain((Attribute("x", "numeric", lower=lower, upper=upper),), "y", ("0", "1"))
    forest = fit(con, "t", domain=public, epsilon=1, recipe="log-odds")
    assert any("bounds window 1" in line for line in forest.guarantee.plan)
    (found,) = forest.domain.attributes
    assert ordinal(found.lower, found.family) < ordinal(found.upper, found.family)


def test_the_plan_says_that_windows_may_follow_the_check(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as db:
        db.execute("CREATE TABLE t (x DOUBLE CHECK (x BETWEEN 0 AND 9), y BOOLEAN)")
    asked = [
        "train",
        "--table",
        "t",
        "--target",
        "y",
        "--privacy-unit",
        "row",
        "--epsilon",
        "1",
        "--name",
        "m",
        "--dry-run",
    ]
    shown = dpforest(*asked, "--db", str(tmp_path / "d.duckdb")).text
    assert "narrower ones are estimated" in shown
