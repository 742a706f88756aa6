"""Limits of the default that follow from noise, and the constants that stand for the others."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.privacy.amounts import NANO, atto_delta
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.ours import (
    auto_rules,
    constants,
    joint_rules,
    joint_tables,
    log_odds,
    tree_beside_sums,
)
from dpforest_duckdb.recipes.ours.auto import pick
from dpforest_duckdb.recipes.row_count_queries import evenness
from dpforest_duckdb.request import Request

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))

from constants import CONSTANTS  # those of the benchmark, with the values it tries


def asked(rows: int, epsilon: float, *, classes: int = 2, numbers: int = 6, k: int = 1) -> Request:
    """A request for a table of real numbers, with a noisy number of rows."""
    made = tuple(Attribute(f"a{n}", "numeric", lower=0, upper=1) for n in range(numbers))
    domain = Domain(made, "k", tuple(f"c{n}" for n in range(classes)))
    return Request(
        domain=domain.bind({**{each.name: DOUBLE for each in made}, "k": VARCHAR}),
        epsilon=round(epsilon * NANO),
        trees=numbers,
        depth=1,
        rows=rows,
        rows_per_unit=k,
    )


def test_there_are_ten_constants_and_each_is_tried_smaller_and_larger() -> None:
    names = {name for name in vars(constants) if name.isupper()}
    assert len(names) == 10
    assert {constant.name for constant in CONSTANTS} == names
    assert all(each.smaller < each.value < each.larger for each in CONSTANTS)


@pytest.mark.parametrize(("check", "strength"), [(10, 452.5), (20, 226.3)])
@pytest.mark.parametrize(("epsilon", "k"), [(1, 1), (0.1, 1), (1, 5)])
def test_two_sums_are_fitted_if_a_cell_has_as_many_rows_as_noise(
    epsilon: float, k: int, check: int, strength: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The histogram of two sums in four bins and two classes has 32 cells and CHECK % of ε."""
    monkeypatch.setattr(constants, "CHECK", check)
    enough = math.ceil(strength * k / epsilon)
    for rows in (enough + 1, enough - 1):
        fitted = asked(rows, epsilon, k=k)
        (*_, last) = find("log-odds").plan(fitted).queries
        assert log_odds.sums_are_fitted(fitted) == (rows > enough) == (last.purpose == "scores")
        if rows > enough:
            assert last.total == fitted.epsilon * check // 100
    assert not log_odds.sums_are_fitted(asked(100 * enough, epsilon, k=k, classes=3))


@pytest.mark.parametrize(("classes", "numbers", "k"), [(6, 60, 1), (7, 60, 1), (7, 60, 4)])
def test_class_means_are_released_if_a_class_has_as_many_rows_as_a_sum_has_noise(
    classes: int, numbers: int, k: int
) -> None:
    """The scale of the noise is that of one count, times the positions of a row."""
    limit = _first(
        lambda rows: auto_rules.means_pay(asked(rows, 1, classes=classes, numbers=numbers, k=k)),
        most=1000 * k,
    )
    noise = math.sqrt(2 * classes) * k / math.hypot(1 / 400, 0.1 - 1 / 400)  # of both counts
    assert limit == pytest.approx(numbers * classes * k + 0.75 * noise, abs=2)


def test_class_means_count_positions_and_need_a_cheap_query() -> None:
    """Three values and NULL have three positions. And 1/16 of ε pays for the query."""
    three = tuple(Attribute(f"b{n}", "categorical", ("x", "y", "z")) for n in range(50))
    mixed = replace(asked(1, 1, classes=6, numbers=60), trees=110)
    mixed = replace(mixed, domain=replace(mixed.domain, attributes=mixed.domain.attributes + three))
    noise = math.sqrt(12) / math.hypot(1 / 400, 0.1 - 1 / 400)
    limit = _first(lambda rows: auto_rules.means_pay(replace(mixed, rows=rows)), 2000)
    assert limit == pytest.approx(6 * (60 + 50 * 3) + 0.75 * noise, abs=2)
    few = _first(lambda rows: auto_rules.means_pay(asked(rows, 1, classes=6)), 1000)
    assert few == pytest.approx(250, abs=2)


@pytest.mark.parametrize("classes", [2, 3, 5, 6])
def test_class_means_are_for_six_classes_or_more(classes: int) -> None:
    asked_for = asked(2_000, 1, classes=classes, numbers=30)
    assert auto_rules.means_pay(asked_for) == (classes >= 6)


@pytest.mark.parametrize("k", [1, 3])
def test_class_means_end_where_all_tables_are_worth_their_noise(k: int) -> None:
    """Six attributes, of which tables may leave out one: K = ½ √t rounds to 5 from t = 81 on."""
    last = 81 * math.sqrt(6) / constants.TABLES * k

    def both(rows: float) -> tuple[bool, int]:
        request = asked(int(rows), 1, classes=6, k=k)
        return auto_rules.means_pay(request), auto_rules.tables_wanted(request)

    assert both(last - 9) == (True, 4)
    assert both(last + 9) == (False, 6)


def _yes_or_no(attributes: int) -> tuple[Attribute, ...]:
    return tuple(
        Attribute(f"b{n}", "categorical", ("n", "y"), nullable=False) for n in range(attributes)
    )


@pytest.mark.parametrize(("rows", "few", "most"), [(50, 1, 10), (300, 2, 27)])
def test_tables_of_categories_are_released_together_if_they_say_half_as_much_again(
    rows: int, few: int, most: int
) -> None:
    """Ten classes, so that joint noise alone would allow no table of these rows.

    m tables of two values are d = m + 1 joint figures with a variance of (d+1)(d+2) / 3ε² each,
    and a count is half of the sum or difference of two. Counts of `few` tables have
    2 (few / .7ε)².
    """

    def made(attributes: int) -> Request:
        wide = replace(asked(rows, 1, classes=10), trees=attributes)
        return replace(wide, domain=replace(wide.domain, attributes=_yes_or_no(attributes)))

    needed = 1.5 * few / (2 * (few / 0.7) ** 2)
    limit = max(m for m in range(4, 40) if m / ((m + 2) * (m + 3) / 6) >= needed)
    fits = [n for n in range(4, 40) if joint_rules.joint_tables_fit(made(n))]
    assert fits == list(range(4, most + 1))
    assert most == pytest.approx(limit, abs=1), "joint noise is a bit larger: it has a least radius"
    for kind, fits_too in ((INTEGER, True), (DOUBLE, False)):  # 0 and 1 have a bin each, or 32 bins
        number = Attribute("a", "numeric", lower=0, upper=1)
        domain = Domain((number, *_yes_or_no(5)), "k", made(6).domain.classes)
        types = {f"b{n}": VARCHAR for n in range(5)}
        domain = domain.bind({**types, "a": kind, "k": VARCHAR})
        assert joint_rules.joint_tables_fit(replace(made(6), domain=domain)) == fits_too


@pytest.mark.parametrize("delta", ["0", "1e-5"])
@pytest.mark.parametrize(
    ("rows", "attributes", "values", "rooted"),
    [
        (1_300, 9, 2, True),
        (900, 9, 2, False),  # too few to choose a model
        (4_000, 9, 4, False),  # noise allows one root
        (4_000, 5, 4, True),
        (4_000, 16, 2, False),  # two roots are in 29 of 120 pairs
    ],
)
def test_two_roots_in_a_quarter_of_all_pairs_come_before_sums_and_boosting_of_two_classes(
    rows: int, attributes: int, values: int, rooted: bool, delta: str
) -> None:
    labels = tuple(map(str, range(values)))
    many = tuple(Attribute(f"b{n}", "categorical", labels) for n in range(attributes))
    made = replace(
        asked(rows, 1, numbers=1),
        delta=atto_delta(delta),
        trees=attributes,
        histogram=(rows // 2, rows // 2),
    )
    number = made.domain.attributes[0]  # with more values than tables have bins
    made = replace(made, domain=replace(made.domain, attributes=many))
    assert (pick(made).name == "rooted-tables") == rooted
    one_fewer = replace(made, trees=attributes - 1)
    assert pick(one_fewer).name != "rooted-tables"
    beside = replace(
        made, trees=attributes, domain=replace(made.domain, attributes=(number, *many[1:]))
    )
    assert pick(beside).name != "rooted-tables"


@pytest.mark.parametrize(
    ("numbers", "classes", "delta", "name"),
    [
        (2, 2, "0", "tree-beside-sums"),
        (3, 2, "0", "boosted"),
        (2, 3, "0", "boosted"),
        (2, 2, "1e-5", "boosted"),
    ],
)
def test_one_tree_takes_the_place_of_boosting_for_two_numbers_and_two_classes(
    numbers: int, classes: int, delta: str, name: str
) -> None:
    made = replace(asked(100_000, 1, numbers=numbers, classes=classes), delta=atto_delta(delta))
    made = replace(made, histogram=(100_000 // classes,) * classes)
    assert auto_rules.boosting_pays(made)
    assert pick(made).name == name


@pytest.mark.parametrize("rows", [500, 1_250])
def test_too_few_rows_for_any_table_leave_the_classes_alone(rows: int) -> None:
    """Eight attributes of sixty values and thirty classes: about a row in a cell, also where rows
    could tell models apart.
    """
    many = tuple(Attribute(f"b{n}", "categorical", tuple(map(str, range(60)))) for n in range(8))
    made = replace(asked(rows, 1, classes=30), trees=8)
    made = replace(made, domain=replace(made.domain, attributes=many))
    assert pick(made).name == "joint-tables"
    assert joint_tables.adapt(np.full(30, rows // 30), made).trees == 0


@pytest.mark.parametrize(("classes", "percent"), [(2, 40), (3, 30), (26, 30)])
def test_draws_get_less_with_three_classes(classes: int, percent: int) -> None:
    made = replace(asked(2_000, 1, classes=classes, numbers=40), trees=5)
    plan = find("log-odds").plan(made)
    drawn, tables = plan.query("attribute"), plan.query("tables")
    assert drawn is not None
    assert tables is not None
    assert drawn.total / (drawn.total + tables.total) == pytest.approx(percent / 100, abs=1e-6)


@pytest.mark.parametrize(("classes", "fits"), [(2, True), (3, False)])
def test_with_three_classes_a_number_that_is_not_shown_excludes_joint_tables(
    classes: int, fits: bool
) -> None:
    """Seven attributes of two values, and one number with 32 bins, of which noise allows fewer."""
    made = replace(asked(900, 1, classes=classes, numbers=1), trees=8)
    attributes = (*made.domain.attributes, *_yes_or_no(7))
    made = replace(made, domain=replace(made.domain, attributes=attributes))
    assert joint_rules.joint_tables_fit(made) == fits
    made = replace(made, trees=7, domain=replace(made.domain, attributes=_yes_or_no(7)))
    assert joint_rules.joint_tables_fit(made)


@pytest.mark.parametrize(
    ("attributes", "classes", "fits"), [(31, 2, True), (31, 3, True), (31, 5, True), (32, 3, False)]
)
def test_few_joint_figures_are_32_with_noise_up_to_the_rows_of_a_class(
    attributes: int, classes: int, fits: bool
) -> None:
    """Attributes of two values have a figure each, and the rows of a class are one more. Figures
    count once for each of 1, 3 or 10 pairs of classes. Two classes count as at least 300 rows.
    """
    epsilon = 1 if classes > 2 else 0.1  # so that the limit is above 300 rows of two classes
    many = replace(asked(100_000, epsilon, classes=classes), trees=attributes)
    many = replace(many, domain=replace(many.domain, attributes=_yes_or_no(attributes)))
    assert joint_rules.few_figures_fit(many) == fits
    if fits:
        limit = _first(lambda rows: joint_rules.few_figures_fit(replace(many, rows=rows)))
        most = 0.04 if classes == 2 else 0.1
        noise = math.sqrt(2 * classes) / math.hypot(1 / 400, most - 1 / 400) / epsilon
        figures = 32 * classes * {2: 1, 3: 3, 5: 10}[classes]
        assert limit == pytest.approx(figures / epsilon + 0.75 * noise, abs=2)


@pytest.mark.parametrize(
    ("classes", "numeric", "delta", "signal"),
    [
        (2, True, 0, 300), (2, False, 0, 900), (3, True, 0, 3000), (3, False, 0, 3000),
        (2, True, 10**-5, 38), (2, False, 10**-5, 114),
        (3, True, 10**-5, 57), (3, False, 10**-5, 171),
        (6, True, 10**-5, 114), (9, True, 10**-5, 114),
    ],
)  # fmt: skip
def test_boosting_starts_at_a_signal(
    classes: int, numeric: bool, delta: float, signal: float
) -> None:
    made = asked(1, 1, classes=classes, numbers=30)
    if not numeric:
        made = replace(made, domain=replace(made.domain, attributes=_yes_or_no(30)))
    made = replace(made, delta=atto_delta(delta))
    limit = _first(lambda rows: auto_rules.boosting_pays(replace(made, rows=rows)))
    assert auto_rules.signal(replace(made, rows=limit)) == pytest.approx(signal, rel=0.02)


@pytest.mark.parametrize(("rare", "times"), [(0.5, 1), (0.1, 1 / 0.36), (0.02, 1 / 0.0784)])
def test_boosting_needs_more_rows_if_one_of_two_classes_is_rare(rare: float, times: float) -> None:
    """By 1 / (4 s (1 - s)) for a share s: the variance of the class, in parts of the largest."""

    def pays(rows: int) -> bool:
        histogram = (round(rows * rare), rows - round(rows * rare))
        return auto_rules.boosting_pays(replace(made, rows=rows, histogram=histogram))

    made = asked(1, 1, numbers=5)
    found = auto_rules.signal(replace(made, rows=_first(pays)))
    assert found == pytest.approx(300 * times, rel=0.02)


def test_a_tree_beside_sums_needs_rows_for_two_leaves() -> None:
    """A leaf needs 100 / ε · classes^1.5 rows, if all classes are equally frequent."""
    limit = _first(lambda rows: auto_rules.tree_pays(asked(rows, 1, classes=4)), most=2_000)
    assert limit == 2 * 100 * 4**1.5
    assert auto_rules.leaves(asked(limit, 1, classes=4)) == 2


@pytest.mark.parametrize(
    ("rows", "delta", "recipe"),
    [
        (200, 0, "log-odds"), (1_000, 0, "class-means"), (2_900, 0, "log-odds"),
        (3_100, 0, "tree-beside-sums"), (60_000, 0, "tree-beside-sums"), (64_000, 0, "boosted"),
        (1_000, 10**-5, "class-means"), (2_500, 10**-5, "log-odds"), (2_700, 10**-5, "boosted"),
    ],
)  # fmt: skip
def test_the_default_picks_a_recipe_by_the_noisy_rows(rows: int, delta: float, recipe: str) -> None:
    """Six numbers, six classes. At 2,900 the careful number of rows is below two leaves."""
    made = replace(asked(rows, 1, classes=6), delta=atto_delta(delta))
    picked = pick(made)
    assert picked.name == recipe
    if recipe == "class-means":
        assert picked.adaptation.if_one_suffices is not None
        assert picked.adaptation.if_one_suffices.recipe.name == "log-odds"


@pytest.mark.parametrize("rows", [1_700, 20_000])
def test_words_get_no_tree_beside_sums_and_no_class_means(rows: int) -> None:
    words = tuple(Attribute(f"b{n}", "categorical", ("x", "y", "z")) for n in range(6))
    made = asked(rows, 1, classes=4)
    made = replace(made, domain=replace(made.domain, attributes=words))
    assert pick(made).name in ("rooted-tables", "joint-tables")
    assert not auto_rules.tree_pays(made)
    assert not auto_rules.means_pay(made)


def test_medians_of_sums_do_not_depend_on_a_delta() -> None:
    """Sums use no δ. Thirty attributes: with a δ, the signal is above 300."""
    made = replace(asked(20_000, 1, classes=3, numbers=30), delta=atto_delta(10**-5))
    assert auto_rules.signal(made) > 300
    assert not tree_beside_sums.medians_pay(made)


@pytest.mark.parametrize(
    ("rows", "classes", "attributes", "bins"),
    [(2_000, 2, 8, 32), (2_000, 9, 5, 24), (400, 2, 3, 16), (200, 2, 2, 12), (60, 2, 1, 8)],
)
def test_attributes_and_bins_follow_from_rows(
    rows: int, classes: int, attributes: int, bins: int
) -> None:
    """With t = .18 · n·ε / √classes the smaller of √t / 2 and t^(2/3) / 4 attributes, and
    t / attributes bins.
    """
    made = asked(0, 1, classes=classes, numbers=40)
    noise = math.sqrt(2 * classes) / math.hypot(1 / 400, (0.04 if classes == 2 else 0.1) - 1 / 400)
    counted = np.full(classes, round((rows + 0.75 * noise) / classes))
    sized = log_odds.adapt(counted, made)
    assert sized.trees == attributes
    assert sized.domain == made.domain.recut(bins)


@pytest.mark.parametrize("rare", [1_000, 200, 50])
def test_a_rare_class_allows_fewer_attributes(rare: int) -> None:
    """√(.18 · n·ε / √2 · 2 / √Σ(1/s)) / 2 of them, with the shares s of two classes."""
    sized = log_odds.adapt(np.array([2_000 - rare, rare]), asked(0, 1, numbers=40))
    part = rare / 2_000
    clear = 0.18 * sized.rows / math.sqrt(2) * 2 / math.sqrt(1 / part + 1 / (1 - part))
    assert sized.trees == round(math.sqrt(clear) / 2)


def test_an_absent_class_counts_as_its_noise() -> None:
    made = asked(0, 1, numbers=40)
    noise = math.sqrt(2) / math.hypot(1 / 400, 0.04 - 1 / 400)
    absent, as_noise = (log_odds.adapt(np.array([2_000, n]), made) for n in (0, round(noise)))
    assert absent.trees == as_noise.trees == 4
    assert log_odds.adapt(np.array([2_000, 3 * round(noise)]), made).trees > 4


def test_evenness_counts_a_class_as_at_least_its_noise() -> None:
    assert evenness(np.array([70, 70, 70]), 1) == pytest.approx(1)
    assert evenness(np.array([900, 100]), 1) == pytest.approx(2 / math.sqrt(1 / 0.9 + 10))
    assert evenness(np.array([900, -50]), 100) == evenness(np.array([900, 100]), 100)


def _first(holds: Callable[[int], bool], most: int = 10**7) -> int:
    """The least number of rows for which a rule holds that holds for all more, up to `most`."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
