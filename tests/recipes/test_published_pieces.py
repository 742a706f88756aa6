"""The pieces that one published system each uses, by hand on small examples."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from recorder import NoNoise
from steps import seeded
from taxonomies import TAXONOMIES, WORKCLASS

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import INTEGER, VARCHAR, column_type
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners.specialisation import draw_by_entry
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.selection import Exponents
from dpforest_duckdb.progress import unobserved
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.published import guan_aggregation as aggregation
from dpforest_duckdb.recipes.published.dprf_gini_splits import (
    by_best_points,
    where_points_are_left,
)
from dpforest_duckdb.recipes.published.privatree import leaf_epsilon
from dpforest_duckdb.recipes.published.privatree_splits import by_private_histograms
from dpforest_duckdb.recipes.published.rana_splits import by_class_means, unless_a_child_is_small
from dpforest_duckdb.recipes.published.thesis_splits import at_points, equidistant
from dpforest_duckdb.recipes.published.tpdprf_relevance import (
    interaction,
    mutual_information,
    symmetrical_uncertainty,
    weights_of,
)
from dpforest_duckdb.request import TrainingContext
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import NO_SPLIT, Choice, Drawn
from dpforest_duckdb.splits.published import unless_few_or_pure
from dpforest_duckdb.splits.utilities import (
    F_MAX,
    GINI,
    MSE_OF_SIGNED,
    MSE_OF_ZERO_ONE,
    PARTS,
    WEIGHTED_MAX,
    Utility,
)


def numbers(*uppers: int) -> Domain:
    """Integer attributes from 0."""
    named = [
        Attribute(f"n{i}", "numeric", lower=0, upper=upper, nullable=False)
        for i, upper in enumerate(uppers)
    ]
    types = {**{a.name: INTEGER for a in named}, "y": VARCHAR}
    return Domain(tuple(named), "y", ("p", "q")).bind(types)


def choice_of(domain: Domain, counts: list[np.ndarray], epsilon: int = 10**6 * NANO) -> Choice:
    ways, nodes, source = candidates(domain, "binary"), len(counts[0]), seeded()
    return Choice(
        candidates=ways,
        counts=counts,
        allowed=np.ones((nodes, len(ways)), dtype=np.bool_),
        reachable=np.ones((nodes, sum(domain.cells)), dtype=np.bool_),
        noisy=None,
        epsilon=epsilon,
        rows_per_unit=1,
        noise=source.noise,
        bits=source.bits,
        rows=1000,
    )


def first(choice: Choice) -> Drawn:
    return Drawn(choice.allowed.argmax(axis=1))


# labels[combination, tree], class, rows: trees 0 and 1 are good, 2 is always wrong, 3 says 0
LABELS = np.array([[0, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]])
TRUTH, ROWS = np.array([0, 1, 1]), np.array([5, 4, 2])


def test_algorithm_2_by_hand() -> None:
    """Ties say class 0. All four err on the second and third combination, 6 rows.

    Round 1: without tree 0 the votes for class 1 are 1/3, 1/3, 0/3: errors 4 + 2 = 6; without 1:
    1/3, 1/3, 1/3: 6; without 2: 0/3, 2/3, 1/3: 2; without 3: 1/3, 2/3, 1/3: 2. The first of the
    least goes, tree 2, E_1 = 2. Round 2, of 0, 1, 3: without 0: 0/2, 1/2, 0/2: 6; without 1: 0/2,
    1/2, 1/2: 6; without 3: 0/2, 2/2, 1/2: 2. Tree 3 goes, E_2 = 2. Round 3, of 0, 1: without 0: 2;
    without 1: 0. E_3 = 0, so tree 0 alone is kept.
    """
    asked: list[list[int]] = []

    def least(errors: np.ndarray, turn: int) -> int:
        asked.append(errors.tolist())
        return aggregation.least(errors, turn)

    assert aggregation.aggregate(LABELS, TRUTH, ROWS, 2, least) == [0]
    assert asked == [[6, 6, 2, 2], [6, 6, 2], [2, 0], [2, 2, 0]]
    assert aggregation.aggregate(LABELS[:, :1], TRUTH, ROWS, 2, least) == [0]


def test_every_error_of_algorithm_2_rises_by_at_most_one_with_a_row() -> None:
    """The draws of the rigorous form are of a monotone utility of sensitivity 1."""
    random = np.random.default_rng(0)
    for _ in range(200):
        labels = random.integers(0, 3, size=(30, 5))
        truth, rows = random.integers(0, 3, 30), random.integers(1, 9, 30)
        more = rows + (np.arange(30) == random.integers(30))
        sides: list[list[np.ndarray]] = []
        for own in (rows, more):
            asked: list[np.ndarray] = []

            def fixed(errors: np.ndarray, turn: int, asked: list[np.ndarray] = asked) -> int:
                asked.append(errors)
                return 0

            aggregation.aggregate(labels, truth, own, 3, fixed)
            sides.append(asked)
        changes = np.concatenate([b - a for a, b in zip(*sides, strict=True)])
        assert set(changes.tolist()) <= {0, 1}


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_a_tree_is_removed_at_the_cost_of_its_round_for_all_rows_of_a_unit(
    monkeypatch: pytest.MonkeyPatch, rows_per_unit: int
) -> None:
    drawn: list[tuple[int, int]] = []

    def first_one(errors: np.ndarray, cost: int, sensitivity: int, bits: Bits) -> int:
        drawn.append((cost, sensitivity))
        return 0

    monkeypatch.setattr(aggregation, "draw_best", first_one)
    recipe = find("guan-dpgdf")
    request = recipe.request(numbers(9, 9), NANO, trees=4, rows_per_unit=rows_per_unit)
    plan = recipe.plan(request)
    account = Accountant(plan, plan.epsilon, 0)
    context = TrainingContext(recipe, request, account, seeded(), unobserved)
    aggregation.aggregate(LABELS, TRUTH, ROWS, 2, aggregation.drawn(context))
    rounds = plan.query("aggregation")
    assert rounds is not None
    assert drawn == [(cost, rows_per_unit) for cost in rounds.by_depth]


def test_mutual_information_and_symmetrical_uncertainty_by_hand() -> None:
    same, apart = np.array([[8, 0], [0, 8]]), np.array([[4, 4], [4, 4]])
    assert mutual_information(same) == pytest.approx(1)
    assert symmetrical_uncertainty(same) == pytest.approx(1)
    assert symmetrical_uncertainty(apart) == pytest.approx(0)
    assert symmetrical_uncertainty(np.array([[5, 0], [0, 0]])) == 0
    # H(X) = 1, H(Y) = H(¼), I = H(¼) − ½ · 1
    h = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    assert symmetrical_uncertainty(np.array([[8, 0], [4, 4]])) == pytest.approx(
        2 * (h - 0.5) / (1 + h)
    )


def test_interaction_gain_by_hand() -> None:
    """XOR: neither of two fair bits predicts the class, both do: IG = 1 and NIG = ½ + 1/4."""
    xor = np.zeros((2, 2, 2), dtype=np.int64)
    for x in (0, 1):
        for y in (0, 1):
            xor[x, y, x ^ y] = 5
    assert interaction(xor) == pytest.approx(0.75)
    # a copy of a bit that is the class: I(X, Y; Z) = 1, less 1 and 1: NIG = ½ − 1/4
    copy = np.zeros((2, 2, 2), dtype=np.int64)
    copy[0, 0, 0] = copy[1, 1, 1] = 5
    assert interaction(copy) == pytest.approx(0.25)


def test_irrelevant_attributes_weigh_nothing() -> None:
    random = np.random.default_rng(1)
    label = random.integers(0, 2, 4000)
    codes = np.stack([label, label ^ (random.random(4000) < 0.2), label * 0], axis=1)
    pairs = {}
    for one, other in ((0, 1), (0, 2), (1, 2)):
        pairs[one, other] = np.zeros((2, 2, 2), dtype=np.int64)
        np.add.at(pairs[one, other], (codes[:, one], codes[:, other], label), 1)
    weights = weights_of(pairs, 3)
    assert weights[0] > weights[1] > weights[2] == 0


def test_ten_points_are_equidistant_in_value() -> None:
    ways = candidates(numbers(109), "binary")
    kept = np.flatnonzero(equidistant(ways, 10))
    range_ = ways.width.sum() + ways.width[-1]  # one bin is above the last edge
    values, bin_ = ways.width.cumsum()[kept] / range_, ways.width.max() / range_
    steps = np.diff(values)
    assert len(kept) == 10
    assert steps.max() - steps.min() < 2 * bin_
    assert values == pytest.approx(np.arange(1, 11) / 11, abs=bin_ / 2), "they make eleven parts"
    few = candidates(numbers(6), "binary")
    assert equidistant(few, 10).all()


@pytest.mark.parametrize(
    ("sql_type", "bounds", "widths"),
    [
        ("HUGEINT", {"lower": 2**100, "upper": 2**100 + 9}, None),
        ("DOUBLE", {"lower": -math.inf, "edges": (0.0, 1.0, 2.0)}, None),
        ("DOUBLE", {"lower": -(10**400), "edges": (0.0, 1.0, 2.0)}, None),
        ("DOUBLE", {"lower": -1.7e308, "edges": (0.0, 1.0, 2.0)}, None),
        ("DOUBLE", {"lower": 0, "upper": 4 * math.ulp(0.0), "bins": 4}, None),
        ("DOUBLE", {"lower": -9e299, "upper": 9e299, "bins": 4}, None),
        ("DOUBLE", {"lower": 0, "edges": (2.0, 3.0, 4.0)}, [2, 1, 1]),
    ],
)
def test_points_have_widths_whatever_the_bounds(
    sql_type: str, bounds: dict[str, Any], widths: list[int] | None
) -> None:
    """Equal ones by default: some edges are the same as floats, or have no bound below them."""
    attribute = Attribute("x", "numeric", nullable=False, **bounds)
    domain = Domain((attribute,), "c", ("a", "b")).bind({"x": column_type(sql_type), "c": VARCHAR})
    found = candidates(domain, "binary").width
    expected = np.array(widths or [1] * len(found))
    assert found / found.sum() == pytest.approx(expected / expected.sum(), rel=1e-5)


def test_whole_numbers_that_are_the_same_as_floats_are_split(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute(
        f"CREATE TABLE t AS SELECT {2**100}::HUGEINT + i % 10 AS x, i % 10 > 4 AS c "
        "FROM range(2000) r(i)"
    )
    attribute = Attribute("x", "numeric", lower=2**100, upper=2**100 + 9, nullable=False)
    domain = Domain((attribute,), "c", ("false", "true"))
    forest = fit(con, "t", domain=domain, recipe="greedy-tree", epsilon=9)
    sql = forest.to_sql("t").rstrip().removesuffix(";")
    assert con.execute(f"SELECT avg((prediction = c)::INT) FROM ({sql})").fetchone() == (1,)


def test_a_node_without_a_point_is_a_leaf() -> None:
    domain = numbers(109)
    tables = [np.ones((2, domain.cells[0], 2), dtype=np.int64)]
    choice = choice_of(domain, tables)
    points = equidistant(choice.candidates, 10)
    choice.allowed[1] = ~points
    drawn = at_points(first, 10)(choice).candidate
    assert points[drawn[0]]
    assert drawn[1] == NO_SPLIT


def test_the_thesis_ends_nodes_of_few_rows_or_one_class() -> None:
    domain = numbers(1)
    cells = domain.cells[0]
    tables = np.zeros((4, cells, 2), dtype=np.int64)
    tables[0, :2] = [[9, 0], [9, 0]]
    tables[1, :2] = [[2, 1], [0, 0]]
    tables[2, :2] = [[3, 0], [0, 1]]
    tables[3, :2] = [[9, 1], [1, 9]]
    drawn = unless_few_or_pure(first, 4)(choice_of(domain, [tables])).candidate
    assert (drawn == NO_SPLIT).tolist() == [True, True, False, False]
    own = find("thesis-forest", as_published=True).choose(choice_of(domain, [tables])).candidate
    assert (own == NO_SPLIT).tolist() == [True, True, False, False]


def test_privatree_splits_two_rows_of_two_classes_and_no_single_row() -> None:
    domain = numbers(1)
    tables = np.zeros((3, domain.cells[0], 2), dtype=np.int64)
    tables[0, 0], tables[1, :2], tables[2, :2] = [1, 0], [[1, 0], [1, 0]], [[1, 0], [0, 1]]
    drawn = find("privatree", as_published=True).choose(choice_of(domain, [tables])).candidate
    assert (drawn == NO_SPLIT).tolist() == [True, True, False]


@pytest.mark.parametrize("published", [False, True])
def test_the_thesis_draws_one_of_ten_points(published: bool) -> None:
    """Equally many rows lie between the ten points: no other threshold is ever drawn."""
    domain = numbers(109)
    tables = [np.tile(np.eye(2, dtype=np.int64)[[0, 1]], (400, domain.cells[0] // 2 + 1, 1))]
    tables = [tables[0][:, : domain.cells[0]]]
    choice = choice_of(domain, tables, NANO // 1000)  # next to no ε: all points are about as likely
    drawn = find("thesis-forest", as_published=published).choose(choice).candidate
    assert set(drawn.tolist()) == set(np.flatnonzero(equidistant(choice.candidates, 10)).tolist())


def test_rana_does_not_split_where_a_child_has_little_support() -> None:
    domain = numbers(1)
    tables = np.zeros((4, domain.cells[0], 2), dtype=np.int64)  # the last node has no row
    tables[0, :2] = [[9, 0], [200, 0]]
    tables[1, :2] = [[10, 0], [0, 10]]
    tables[2, :2] = [[0, 0], [50, 50]]  # a child without any row does not count
    choose = unless_a_child_is_small(first, lambda choice: choice.rows // 100)
    drawn = choose(choice_of(domain, [tables])).candidate
    assert (drawn == NO_SPLIT).tolist() == [True, False, False, True]


def test_li_and_li_take_the_best_point_of_each_attribute() -> None:
    """(4.6): the points of least Gini; a thousand draws without much ε show both attributes."""
    domain = numbers(3, 3)
    tables = [np.zeros((1000, cells, 2), dtype=np.int64) for cells in domain.cells]
    tables[0][:, :4] = [[5, 0], [0, 5], [0, 5], [0, 5]]  # best cut after the first value
    tables[1][:, :4] = [[5, 2], [0, 1], [0, 1], [0, 11]]
    choice = choice_of(domain, tables, epsilon=NANO // 1000)
    ways = choice.candidates
    drawn = by_best_points(GINI)(choice).candidate
    best = [
        own[GINI.function(ways.branch_counts(tables, a))[0].argmax()]
        for a, own in ((0, ways.of(0)), (1, ways.of(1)))
    ]
    assert set(drawn.tolist()) == set(best)


def test_each_chooser_has_the_nodes_that_it_is_for() -> None:
    domain = numbers(3, 3)
    choice = choice_of(domain, [np.ones((2, cells, 2), dtype=np.int64) for cells in domain.cells])
    choice.allowed[1] = False
    choice.allowed[1, [choice.candidates.of(0)[1], choice.candidates.of(1)[2]]] = True
    seen: dict[str, int] = {}

    def recorded(name: str) -> Callable[[Choice], Drawn]:
        def choose(choice: Choice) -> Drawn:
            seen[name] = len(choice.allowed)
            return first(choice)

        return choose

    drawn = where_points_are_left(recorded("points"), recorded("plain"))(choice).candidate
    assert seen == {"points": 1, "plain": 1}
    assert choice.allowed[np.arange(2), drawn].all()


def test_f_max_by_hand() -> None:
    """Branches of 5 and 5 rows, largest counts 5 and 4: 5/5 · 5 + 4/5 · 4 = 8.2."""
    counts = np.array([[5, 0], [1, 4]])
    assert F_MAX.function(counts) / PARTS == pytest.approx(8.2, abs=1 / PARTS)
    assert WEIGHTED_MAX.function(counts) == 8
    assert F_MAX.function(np.zeros((2, 2), dtype=np.int64)) == 0


@pytest.mark.parametrize("utility", [F_MAX, WEIGHTED_MAX], ids=lambda u: u.name)
def test_f_max_prefers_a_split_that_separates_classes_to_one_with_an_empty_side(
    utility: Utility,
) -> None:
    empty, apart = np.array([[30, 10], [0, 0]]), np.array([[30, 0], [0, 10]])
    halves = np.array([[15, 5], [15, 5]])
    assert utility.function(empty) == utility.function(halves) < utility.function(apart)


def test_the_codings_of_labels_give_a_quarter_and_a_sixteenth() -> None:
    """(4.16) and (5.3) at P = 1 are exp(−ε N MSE / 8): ε n G / 4 with ±1, / 16 with 0 and 1."""
    counts = np.array([[6.0, 2.0], [1.0, 7.0]])
    n = counts.sum(axis=1)
    gini = (n - (counts**2).sum(axis=1) / n).sum()
    of_zero_one = ((0.0, 1.0), MSE_OF_ZERO_ONE, 16)
    for labels, utility, part in (((-1.0, 1.0), MSE_OF_SIGNED, 4), of_zero_one):
        y = np.array(labels)
        mean = (counts * y).sum(axis=1) / n
        squares = (counts * (y[None] - mean[:, None]) ** 2).sum()
        assert squares / 8 == pytest.approx(gini / part)
        assert 2 * utility.sensitivity == part
        assert utility.function is GINI.function
        assert not utility.monotone


def test_privatree_leaves_need_less_with_more_rows() -> None:
    """Two classes: max_p p ln(1/p) = 1/e, so 2^d / (e n 1 %)."""
    request = find("privatree").request(numbers(5), NANO)
    assert leaf_epsilon(replace(request, rows=1000)) == pytest.approx(16 / np.e / 10, rel=1e-5)
    assert leaf_epsilon(replace(request, rows=2000)) == pytest.approx(8 / np.e / 10, rel=1e-5)
    units = replace(request, rows=2000, rows_per_unit=2)  # as noisy as half of the rows
    assert leaf_epsilon(units) == pytest.approx(16 / np.e / 10, rel=1e-5)


def test_entries_weigh_the_same_however_many_points_they_have() -> None:
    """Primes whose product passes 2^63: the draw needs no weight of that size."""
    sizes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
    even = Exponents(np.zeros((1, sum(sizes)), dtype=np.int64), 1)
    bits = seeded(5).bits
    drawn = [draw_by_entry(even, sizes, bits) for _ in range(8000)]
    group = np.searchsorted(np.cumsum(sizes), drawn, side="right")
    expected = 8000 / len(sizes)
    counts = np.bincount(group, minlength=len(sizes))
    assert abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_dt_diff_trains_on_sixteen_numeric_attributes_of_prime_bins(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
    columns = ", ".join(f"CAST(hash(i, {p}) % {p + 1} AS INTEGER) AS n{p}" for p in primes)
    con.execute(f"CREATE TABLE t AS SELECT {columns}, i % 2 = 0 AS y FROM range(500) r(i)")
    named = [Attribute(f"n{p}", "numeric", edges=tuple(range(p)), nullable=False) for p in primes]
    forest = fit(con, "t", domain=Domain(tuple(named), "y", ("false", "true")), recipe="dt-diff")
    assert forest.trees[0].nodes > 1


def test_a_taxonomy_of_several_levels_is_gone_down_one_entry_at_a_time(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    work = [
        *("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov"),
        *("State-gov", "Without-pay", "Never-worked"),
    ]
    listed = ", ".join(f"'{name}'" for name in work)
    con.execute(
        f"CREATE TABLE t AS SELECT [{listed}][i % 8 + 1] AS work, "
        "CASE WHEN i % 8 IN (3, 6) THEN 'a' ELSE 'b' END AS y FROM range(4000) r(i) "
        "WHERE i % 8 NOT IN (1, 2) OR i < 2000"  # fewer who are self-employed than unpaid
    )
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "work", "kind": "categorical", "domain": work, "taxonomy": WORKCLASS},
                {"name": "y", "kind": "categorical", "domain": ["a", "b"]},
            ],
        }
    )
    forest = fit(con, "t", domain=domain, recipe="diffgen", depth=4, epsilon=100)
    names = [attribute.name for attribute in forest.domain.attributes]
    assert names == ["work", "work (group)", "work (group 2)"]
    assert forest.domain.attributes[2].values == ("private", "self", "government", "unpaid")
    (tree,) = forest.trees
    assert tree.attribute[0] == 1, "the top first"
    # four steps: the top, what is paid, then two of the groups; the others stay whole
    split = tree.attribute[tree.attribute >= 0].tolist()
    assert split[:2] == [1, 2] or split.count(0) >= 1
    assert len(split) == 4
    assert split.count(0) == 2, "one group at a time, not all that are open"
    right = forest.predict(con, "t").filter("prediction = y").aggregate("count(*)").fetchall()
    assert right == [(3500,)]


def test_groups_in_groups_must_hold_categories() -> None:
    with pytest.raises(DpforestError, match="groups of categories"):
        domain_from_mapping({"target": "y", "column": [
            {"name": "a", "kind": "categorical", "domain": ["u"], "taxonomy": {"g": {}}},
            {"name": "y", "kind": "categorical", "domain": ["a", "b"]},
        ]})  # fmt: skip


@pytest.mark.parametrize("recipe", ["diffgen", "dt-diff"])
def test_adult_is_made_finer_through_workclass_and_education(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    real: Callable[[str], Path],
    recipe: str,
) -> None:
    plain = tomllib.loads(real("adult_train").read_text(encoding="utf-8"))
    for column in plain["column"]:
        if column["name"] in TAXONOMIES:
            column["taxonomy"] = TAXONOMIES[column["name"]]
    domain = domain_from_mapping(plain).keep(["workclass", "education"])
    forest = fit(con, "adult_train", domain=domain, recipe=recipe, epsilon=20, depth=5)
    names = [attribute.name for attribute in forest.domain.attributes]
    assert names[2:] == [
        *("workclass (group)", "workclass (group 2)", "education (group)", "education (group 2)"),
    ]
    (tree,) = forest.trees
    used = {names[a] for a in tree.attribute[tree.attribute >= 0]}
    assert {"education (group)", "education (group 2)"} <= used
    hits = forest.predict(con, "adult_train").filter(f'prediction = "{domain.target}"')
    assert hits.aggregate("count(*)").fetchall()[0][0] > 0.76 * 32561


def mean_point(*classes: list[int]) -> int:
    """The threshold of a node whose rows of each class are in these bins of 0 to 7; no noise."""
    public = numbers(7)
    counts = np.zeros((1, public.cells[0], 2), dtype=np.int64)
    for label, bins in enumerate(classes):
        np.add.at(counts[0, :, label], bins, 100)
    choice = choice_of(public, [counts], epsilon=10**6 * NANO)
    return int(choice.candidates.cell[by_class_means(choice).candidate[0]])


def test_the_mean_of_class_means_by_hand() -> None:
    assert mean_point([1], [3, 6]) == 2, "(1 + 4.5) / 2 is nearest to the edge after bin 2"
    assert mean_point([6], [1, 4]) == 4, "the same from above: an edge is between two bins"
    assert mean_point([3], [4, 4, 5]) == 3, "3.67 separates the classes"
    assert mean_point([], [5, 6]) == 5, "a class without rows has no mean, which is not 0"


def test_noisy_histograms_take_the_split_of_least_gini() -> None:
    public = numbers(1, 1)
    tells, nothing = [[8, 0], [0, 8]], [[4, 4], [4, 4]]
    pad = [[0, 0]] * (public.cells[0] - 2)
    two = [np.array([nothing + pad]), np.array([tells + pad])]
    choice = choice_of(public, two, epsilon=10**3 * NANO)
    assert choice.candidates.attribute[by_private_histograms(choice).candidate].tolist() == [1]
    one_sided = [np.array([[[8, 8], [0, 0], *pad]])] * 2
    choice = choice_of(public, one_sided, epsilon=10**3 * NANO)
    assert by_private_histograms(choice).candidate.tolist() == [NO_SPLIT]


def test_noise_of_published_choosers_grows_with_the_rows_of_a_unit() -> None:
    """Every histogram has its part of ε; a sum of bins changes by the number of bins for a row."""
    public = numbers(3, 3)
    counts = [np.ones((1, cells, 2), dtype=np.int64) for cells in public.cells]
    for choose, bound in ((by_private_histograms, 3), (by_class_means, 3 * 4)):
        noise = NoNoise()
        choose(replace(choice_of(public, counts), rows_per_unit=3, noise=noise))
        assert {call.bound for call in noise.given} == {bound}
