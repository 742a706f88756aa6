"""Attributes drawn one after the other, and their tables: what a row changes, what is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from recorder import NoNoise
from steps import encode, spending

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners import informative_tables
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.informative_tables import (
    PARTS,
    class_weights,
    draw_attributes,
    release_in_groups,
    trees_of,
)
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import ExactNoise, laplace_deviation
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery, counting
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import unobserved
from dpforest_duckdb.recipes import adaptation, find
from dpforest_duckdb.recipes.ours import auto_rules
from dpforest_duckdb.recipes.ours.auto_rules import unexplained
from dpforest_duckdb.recipes.ours.log_odds import tables_query
from dpforest_duckdb.request import Request, Scores
from dpforest_duckdb.splits import limits
from dpforest_duckdb.splits.table_codes import JointTables, TableCodes, has_contrasts
from dpforest_duckdb.splits.table_groups import like_groups
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.tree import Tree

DOMAIN = Domain(
    (
        Attribute("a", "categorical", ("x", "y", "z"), nullable=False),
        Attribute("copy", "categorical", ("x", "y", "z"), nullable=False),
        Attribute("n", "numeric", lower=0, upper=4, bins=4, nullable=False),
        Attribute("m", "numeric", lower=0, upper=4, bins=4, nullable=False),
    ),
    "c",
    ("c0", "c1", "c2"),
).bind({"a": VARCHAR, "copy": VARCHAR, "n": INTEGER, "m": INTEGER, "c": VARCHAR})
Row = tuple[str, str, int, int, str]


def some_rows(rows: int, seed: int = 0) -> list[Row]:
    """The class follows "n" and "a" together; "copy" is the same as "a"; "m" says nothing."""
    random, found = np.random.default_rng(seed), []
    for _ in range(rows):
        a, n, m = random.integers(3), random.integers(4), random.integers(4)
        label = int((a == 0) != (n < 2)) if random.random() < 0.9 else 2
        found.append(("xyz"[a], "xyz"[a], int(n) + 1, int(m) + 1, f"c{label}"))
    return found


def coded(con: duckdb.DuckDBPyConnection, rows: list[Row]) -> CodedRows:
    con.execute("CREATE OR REPLACE TABLE t (a VARCHAR, copy VARCHAR, n INT, m INT, c VARCHAR)")
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        con.execute("INSERT INTO t SELECT " + ", ".join(["unnest(?)"] * 5), columns)
    engine = DuckDBEngine(con)
    return encode(engine, engine.table("t"), DOMAIN)


def drawn(
    con: duckdb.DuckDBPyConnection,
    rows: list[Row],
    turns: int,
    k: int = 1,
    epsilon: int = NANO,
    histogram: tuple[int, ...] = (),
) -> list[int]:
    counted = coded(con, rows)
    tables = [table[0] for table in counted.count_classes(0, 1)]
    request = find("log-odds").request(DOMAIN, NANO, trees=turns, rows_per_unit=k)
    request = replace(request, histogram=histogram)
    plan = SimpleNamespace(query=lambda purpose: True, row_noise=lambda k: 0.0)
    account = SimpleNamespace(spend=lambda purpose, turn: epsilon, plan=plan)
    context = SimpleNamespace(
        request=request, accountant=account, randomness=Randomness.secure(), observe=unobserved
    )
    return draw_attributes(counted, tables, cast(Any, context))


def test_a_copy_is_not_drawn_beside_its_original(con: duckdb.DuckDBPyConnection) -> None:
    for seed in range(3):
        one, two, _ = drawn(con, some_rows(400, seed), 3, epsilon=1000 * NANO)
        assert {one, two} != {0, 1}
    assert sorted(drawn(con, some_rows(400), 4, epsilon=1000 * NANO)) == [0, 1, 2, 3]


@pytest.mark.parametrize("histogram", [(), (60, 3, 20)])
@pytest.mark.parametrize("k", [1, 4])
def test_rows_of_a_unit_raise_each_utility_by_the_sensitivity_at_most(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    k: int,
    histogram: tuple[int, ...],
) -> None:
    """The utilities of "n", "copy" and "m" after "a" was drawn, "n" after "copy", and so on."""
    given: list[tuple[np.ndarray, int]] = []

    def first(utilities: np.ndarray, cost: int, sensitivity: int, bits: object) -> int:
        given.append((utilities, sensitivity))
        return 0

    monkeypatch.setattr(informative_tables, "draw_best", first)
    largest = np.zeros(4)
    for seed in range(4):
        rows = some_rows(10 * seed)  # in a table without rows, a unit raises every term
        given.clear()
        drawn(con, rows, 4, k, histogram=histogram)
        drawn(con, rows + some_rows(1, 9 - seed) * k, 4, k, histogram=histogram)
        for turn, ((before, bound), (after, _)) in enumerate(zip(given, given[4:], strict=False)):
            assert bound == (turn + 1) * k * PARTS
            assert (after >= before).all()
            assert (after - before <= bound).all()
            largest[turn] = max(largest[turn], (after - before).max())
    assert largest.tolist() == [terms * k * PARTS for terms in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("histogram", "noise", "expected"),
    [
        ((900, 100), 0, (PARTS // 9, PARTS)),
        ((100, 900), 50, (PARTS, PARTS * 150 // 850)),
        ((500, 10, 250), 0, (PARTS // 2, PARTS, PARTS)),
        ((500, 500), 0, (PARTS, PARTS)),
        ((520, 480), 30, (PARTS, PARTS)),  # the noise could have reversed them
        ((700, -90), 0, (1, PARTS)),  # no weight is 0
        ((-5, -90), 10, (PARTS, PARTS)),
        ((), 10, (PARTS, PARTS)),
    ],
)
def test_a_row_of_the_most_frequent_class_has_less_weight(
    histogram: tuple[int, ...], noise: float, expected: tuple[int, ...]
) -> None:
    domain = replace(DOMAIN, classes=tuple(f"c{i}" for i in range(len(expected))))
    request = replace(find("log-odds").request(domain, NANO), histogram=histogram)
    plan = SimpleNamespace(row_noise=lambda k: noise)
    assert class_weights(request, cast(Any, plan)).tolist() == list(expected)


def test_the_noise_of_a_weight_is_that_of_rows_per_unit() -> None:
    request = find("log-odds").request(DOMAIN, NANO, rows_per_unit=5)
    plan = SimpleNamespace(row_noise=lambda k: 10.0 * k)
    weights = class_weights(replace(request, histogram=(900, 100, 50)), cast(Any, plan))
    assert weights.tolist() == [PARTS * 150 // 850, PARTS, PARTS]


def test_pairs_of_values_have_the_weights_of_their_classes(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "n" after "a": its rows of the best class alone and in pairs, all of them weighed."""
    seen: list[np.ndarray] = []

    def first(utilities: np.ndarray, cost: int, sensitivity: int, bits: object) -> int:
        seen.append(utilities)
        return 0

    monkeypatch.setattr(informative_tables, "draw_best", first)
    rows, weights = some_rows(200), np.array([PARTS // 4, PARTS, PARTS])
    drawn(con, rows, 2, histogram=(80, 20, 10))
    alone, pairs = np.zeros((5, 3), np.int64), np.zeros((3, 5, 3), np.int64)
    for a, _, n, _, label in rows:
        alone[n, int(label[1])] += 1
        pairs["xyz".index(a), n, int(label[1])] += 1
    expected = (alone * weights).max(axis=1).sum(), (pairs * weights).max(axis=2).sum()
    assert seen[0][2] == expected[0]
    assert seen[1][1] == sum(expected)  # "a" is drawn, so "n" is the second that is left


@pytest.mark.more
def test_an_attribute_that_finds_a_rare_class_is_drawn_first(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """Class c1 has 10 % of the rows at most values of "n", and 40 % at one: a minority everywhere,
    so every attribute alone classifies equally many rows correctly.
    """
    rows: list[Row] = []
    for i in range(4_000):
        n, of_ten = 1 + i % 4, i // 4 % 10
        rare = of_ten < (4 if n == 1 else 1)
        rows.append(("xyz"[i % 3], "xyz"[i % 3], n, 1 + i // 40 % 4, "c1" if rare else "c0"))
    counts = (3_300, 700, 0)
    assert {drawn(con, rows, 1, histogram=counts)[0] for _ in range(10)} == {2}
    assert len({drawn(con, rows, 1)[0] for _ in range(60)}) > 1


def test_pairs_of_values_are_counted_for_every_attribute(con: duckdb.DuckDBPyConnection) -> None:
    rows = some_rows(50)
    codes = np.array(
        [[a.code(v) for a, v in zip(DOMAIN.attributes, r, strict=False)] for r in rows]
    )
    labels = np.array([DOMAIN.classes.index(row[-1]) for row in rows])
    for attribute, bins in ((0, (0, 1, 2, 3)), (2, (0, 1, 2, 3, 4)), (2, (0, 0, 1, 1, 2))):
        first = np.array(bins)[codes[:, attribute]]
        for other, table in enumerate(coded(con, rows).count_pairs(attribute, bins)):
            expected = np.zeros((max(bins) + 1, DOMAIN.cells[other], 3), dtype=np.int64)
            np.add.at(expected, (first, codes[:, other], labels), 1)
            assert (table == expected).all()


def test_an_attribute_of_too_many_values_has_no_pairs(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a utility is that of the attribute alone, and has its sensitivity."""
    given = []
    monkeypatch.setattr(
        informative_tables, "draw_best", lambda u, cost, bound, bits: given.append(bound) or 0
    )
    monkeypatch.setattr(limits, "MAX_COUNTS", min(DOMAIN.cells) * sum(DOMAIN.cells) * 3 - 1)
    drawn(con, some_rows(50), 4)
    assert given == [PARTS] * 4


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_few_rows_gets_attributes_too(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    assert len(set(drawn(con, some_rows(rows), 4))) == 4


MIXED = Domain(
    (
        Attribute("two", "categorical", ("x", "y"), nullable=False),
        Attribute("four", "categorical", ("p", "q", "r", "s"), nullable=False),
        Attribute("twenty", "numeric", lower=0, upper=20, bins=20, nullable=False),
        Attribute("more", "numeric", lower=0, upper=22, bins=22, nullable=False),
        Attribute("three", "categorical", ("u", "v", "w"), nullable=False),
    ),
    "c",
    ("c0", "c1", "c2"),
)
MIXED = MIXED.bind(
    {"two": VARCHAR, "four": VARCHAR, "three": VARCHAR, "c": VARCHAR}
    | {"twenty": INTEGER, "more": INTEGER}
)


def released(
    rows: np.ndarray, k: int = 1, costs: tuple[int, ...] = (NANO,) * 5, noise: Any = None
) -> JointTables:
    """The tables of all attributes, of `rows[row]`: a cell of each attribute, and the class."""
    private = []
    for number, cells in enumerate(MIXED.cells):
        table = np.zeros((cells, 3), dtype=np.int64)
        np.add.at(table, (rows[:, number], rows[:, -1]), 1)
        private.append(table)
    plan = Plan((PlannedQuery("tables", "joint noise in groups", costs),))
    context = SimpleNamespace(
        request=find("log-odds").request(MIXED, NANO, rows_per_unit=k),
        accountant=SimpleNamespace(spend=lambda purpose, place: costs[place], plan=plan),
        randomness=SimpleNamespace(noise=noise or ExactNoise(SecureBits())),
        observe=unobserved,
    )
    return release_in_groups(private, range(5), cast(Any, context))


def mixed_rows(rows: int, seed: int) -> np.ndarray:
    """Cells that the domain describes, and others."""
    return np.random.default_rng(seed).integers(0, (*MIXED.cells, 3), (rows, 6))


@pytest.mark.parametrize("k", [1, 3])
def test_a_unit_changes_each_group_of_tables_by_its_sensitivity_at_most(k: int) -> None:
    """In the norm of joint noise: the largest L1 norm of a block, added up over classes."""
    given: list[tuple[np.ndarray, Any, int, int]] = []

    def kept(sums: np.ndarray, blocks: Any, epsilon: int, sensitivity: int) -> np.ndarray:
        given.append((sums, blocks, epsilon, sensitivity))
        return sums

    noise, largest = SimpleNamespace(joint=kept), [0.0, 0.0]
    part = NANO // 10
    costs = (5 * part, 4 * part, 3 * part, 2 * part, part)
    for seed in range(20):
        rows = mixed_rows(30 * (seed % 3), seed)
        unit = np.tile(mixed_rows(1, 100 + seed), (k, 1)) if seed % 2 else mixed_rows(k, 50 + seed)
        given.clear()
        released(rows, k, costs, noise)
        released(np.concatenate([rows, unit]), k, costs, noise)
        assert [epsilon for *_, epsilon, _ in given] == [10 * part, 5 * part] * 2
        for group in range(2):
            (before, blocks, _, bound), (after, *_) = given[group], given[group + 2]
            starts = np.cumsum([0, *blocks])[:-1]
            moved = np.add.reduceat(np.abs(after - before), starts, axis=1).max(axis=1).sum()
            largest[group] = max(largest[group], moved / bound)
    assert largest == [1.0, 1.0]


@pytest.mark.parametrize("k", [1, 3])
def test_the_stated_noise_of_grouped_tables_is_the_noise_that_is_there(k: int) -> None:
    random, true = np.random.default_rng(1), []
    columns = [random.choice(attribute.described, 400) for attribute in MIXED.attributes]
    rows = np.column_stack([*columns, random.integers(0, 3, 400)])
    for number, attribute in enumerate(MIXED.attributes):
        table = np.zeros((attribute.cells, 3))
        np.add.at(table, (rows[:, number], rows[:, -1]), 1)
        true.append(table[list(attribute.described)])
    errors, totals, found = [list[float]() for _ in MIXED.attributes], list[float](), None
    for _ in range(400):
        found = released(rows, k, (k * NANO // 10,) * 5)  # rounding adds little to this noise
        for place, table in enumerate(found.counts):
            errors[place].append(float(((table - true[place]) ** 2).mean()))
        assert found.totals is not None
        totals.append(float(((found.totals - true[0].sum(axis=0)) ** 2).mean()))
    assert found is not None
    for place, noise in enumerate(found.noise):
        assert np.mean(errors[place]) == pytest.approx(noise**2, rel=0.12)
    assert np.mean(totals) == pytest.approx(found.noise_of_totals**2, rel=0.15)


def test_tables_are_grouped_so_that_they_have_the_least_noise() -> None:
    """All attributes with contrasts together, and those of many values together: no other way to
    divide them, nor independent noise for each, has a smaller variance on average.
    """
    attributes, costs = MIXED.attributes, [NANO // 10] * 5

    def variance_of(group: list[Attribute]) -> float:
        if len(group) == 1:
            return laplace_deviation(NANO // 10, 1) ** 2
        codes = TableCodes(group, with_totals=has_contrasts(group))
        return sum(each**2 for each in codes.deviations(len(group) * NANO // 10, 1))

    def variance(groups: list[list[int]]) -> float:
        return sum(variance_of([attributes[place] for place in group]) for group in groups)

    found = like_groups(attributes, costs)
    assert found == [[0, 1, 4], [2, 3]]
    others = ([[0, 1, 2, 3, 4]], [[0, 1, 4], [2], [3]], [[0, 1, 4, 2], [3]])
    assert all(variance(found) <= variance(other) for other in others)
    assert variance(found) < 5 * laplace_deviation(NANO // 10, 1) ** 2
    assert like_groups(attributes[2:3], [NANO]) == [[0]]
    in_contrasts = TableCodes(attributes[1:2]).deviations(NANO, 1)
    assert in_contrasts[0] > laplace_deviation(NANO, 1), "so one by itself is released as counts"


def test_many_sizes_are_grouped_in_no_time() -> None:
    """Neither the time nor the memory grows with the number of values."""
    many = [Attribute(f"a{n}", "categorical", tuple(map(str, range(n)))) for n in range(2, 402)]
    many.append(Attribute("wide", "categorical", tuple(map(str, range(10_000)))))
    groups = like_groups(many, [NANO] * len(many))
    assert sorted(place for group in groups for place in group) == list(range(len(many)))
    assert 1 < len(groups) < len(many)
    assert groups[-1] == [len(many) - 1]


def test_attributes_are_fewer_if_the_strongest_leaves_few_rows() -> None:
    recipe = find("log-odds")
    many = tuple(Attribute(f"a{i}", "numeric", lower=0, upper=9) for i in range(40))
    domain = Domain(many, "c", ("c0", "c1", "c2"))
    counts = np.array([1000, 1000, 1000])
    asked = adaptation.adapted(recipe, recipe.request(domain, NANO), counts)
    query = asked.unsized.preliminary[-1]
    assert query.purpose == Purpose.STRONGEST
    assert query.total == pytest.approx(NANO / math.sqrt(3000), rel=0.01)
    noise = 0.75 * laplace_deviation(query.total, 1)
    trees = {}
    for wrong in (-500, 0, 500, 1000, 2000, 9000):
        settled = adaptation.with_misclassified(asked, wrong).request
        expected = min(max(wrong + noise, 0) / 2000, 1)
        assert unexplained(settled) == pytest.approx(expected)
        trees[wrong] = settled.trees
    assert trees[-500] == 1
    assert trees[0] < trees[500] < trees[1000] < trees[2000] == trees[9000]
    assert trees[9000] == asked.request.trees


@pytest.mark.parametrize(
    ("classes", "rows", "asks"), [(3, 300, True), (3, 200, False), (2, 9000, False)]
)
def test_the_strongest_attribute_is_asked_for_with_several_classes_and_enough_rows(
    classes: int, rows: int, asks: bool
) -> None:
    many = tuple(Attribute(f"a{i}", "numeric", lower=0, upper=9) for i in range(40))
    domain = Domain(many, "c", tuple(f"c{i}" for i in range(classes)))
    recipe = find("log-odds")
    found = adaptation.adapted(
        recipe, recipe.request(domain, NANO), np.full(classes, rows // classes)
    )
    assert any(query.purpose == Purpose.STRONGEST for query in found.unsized.preliminary) == asks


@pytest.mark.parametrize("attribute", [1, 2])
def test_a_table_by_itself_has_independent_noise(attribute: int) -> None:
    """It has the counts of all values that the domain describes, and no others."""
    private = [np.full((cells, 3), 7, dtype=np.int64) for cells in MIXED.cells]
    noise = NoNoise(np.array(1))
    plan = Plan((PlannedQuery("tables", "joint noise in groups", (NANO,)),))
    context = SimpleNamespace(
        request=find("log-odds").request(MIXED, NANO, rows_per_unit=3),
        accountant=SimpleNamespace(spend=lambda purpose, place: NANO, plan=plan),
        randomness=SimpleNamespace(noise=noise),
        observe=unobserved,
    )
    found = release_in_groups(private, [attribute], cast(Any, context))
    (asked,) = noise.given
    assert asked.private.shape == (len(MIXED.attributes[attribute].described), 3)
    assert asked.price == (NANO, 3)
    assert (found.counts[0] == asked.private + 1).all()
    assert found.noise == [laplace_deviation(NANO, 3)]
    assert found.totals is None


@pytest.mark.parametrize("trees", [2, 5])
def test_groups_cost_what_the_plan_says(trees: int) -> None:
    """By rank if few are drawn, and in equal parts of all attributes."""
    request = find("log-odds").request(MIXED, NANO, trees=trees)
    plan = Plan((tables_query(NANO, trees, every=trees == 5),))
    account, noise = Accountant(plan, NANO, 0), NoNoise()
    context = SimpleNamespace(
        request=request,
        accountant=account,
        randomness=SimpleNamespace(noise=noise),
        observe=unobserved,
    )
    private = [np.full((cells, 3), 7, dtype=np.int64) for cells in MIXED.cells]
    release_in_groups(private, range(trees), cast(Any, context))
    spent = sum(call.cost for call in noise.given)
    assert spent == spending(account).epsilon
    assert NANO - 5 <= spent <= NANO


def test_each_table_is_that_of_its_attribute() -> None:
    """Without noise: also if two attributes have as many values, or if the first cell is not
    described.
    """
    alike = replace(
        MIXED,
        attributes=(
            *MIXED.attributes[:2],
            Attribute("same", "categorical", ("k", "l", "m", "n"), nullable=False),
        ),
    ).bind({"two": VARCHAR, "four": VARCHAR, "same": VARCHAR, "c": VARCHAR})
    random, private = np.random.default_rng(3), []
    rows = random.integers(0, 3, 500)
    for attribute in alike.attributes:
        table = np.zeros((attribute.cells, 3), dtype=np.int64)
        np.add.at(table, (random.choice(attribute.described, 500), rows), 1)
        private.append(table)
    exact = SimpleNamespace(joint=lambda sums, *_: sums, laplace=lambda counts, *_: counts)
    plan = Plan((PlannedQuery("tables", "joint noise in groups", (NANO,) * 3),))
    request = find("log-odds").request(alike, NANO)
    context = SimpleNamespace(
        request=request,
        accountant=SimpleNamespace(spend=lambda purpose, place: NANO, plan=plan),
        randomness=SimpleNamespace(noise=exact),
        observe=unobserved,
    )
    drawn = [2, 0, 1]
    found = release_in_groups(private, drawn, cast(Any, context))
    growth = Growth(alike.cells, 3, 3)
    *trees, totals = trees_of(found, request, drawn, growth)
    assert totals.counts is not None
    assert (totals.counts[0] == private[0].sum(axis=0)).all()
    for number, tree in zip(drawn, trees, strict=True):
        assert tree.attribute[0] == number
        assert tree.counts is not None
        assert (tree.counts[1:] == private[number]).all()


def test_a_histogram_of_sums_counts_rows_by_their_leaves_in_all_trees(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without noise: each pair of values has a sum of its own."""
    rows = [row for row in some_rows(300) if row[-1] != "c2"]
    coded(con, rows)
    first, second = DOMAIN.attributes[0], DOMAIN.attributes[2]
    two = replace(DOMAIN, attributes=(first, second), classes=("c0", "c1"))
    pairs = first.cells * second.cells
    votes = [np.arange(first.cells) * second.cells, np.arange(second.cells)]

    def pair(trees: Sequence[Tree], request: Request, plan: Plan) -> Scores:
        return Scores([[np.append(0, of_leaves) for of_leaves in votes]], range(pairs - 1))

    monkeypatch.setattr(informative_tables, "sums_cut", pair)
    learner = informative_tables.INFORMATIVE_TABLES
    request = find("log-odds").request(two, NANO)
    plan = Plan((tables_query(NANO, 2, every=True), counting(Purpose.SCORES, (NANO,))))
    exact = SimpleNamespace(joint=lambda sums, *_: sums, laplace=lambda counts, *_: counts)
    context = SimpleNamespace(
        request=request,
        accountant=Accountant(plan, 2 * NANO, 0),
        randomness=SimpleNamespace(noise=exact),
        observe=unobserved,
    )
    engine, trees = DuckDBEngine(con), learner.trees_at_once(request)
    table = encode(engine, engine.table("t"), two, trees=trees)
    expected = np.zeros((pairs, 2), dtype=np.int64)
    for a, _, n, _, label in rows:
        expected[first.code(a) * second.cells + second.code(n), int(label == "c1")] += 1
    found = learner.grow(table, cast(Any, context))
    assert found.joint is not None
    assert found.joint.tolist() == expected.tolist()


@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
def test_the_number_of_attributes_follows_from_noisy_figures_alone(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """800 rows, of which "a" alone classifies 100 wrongly; noise adds 700 to a single figure, and
    5,000 to each of several.
    """
    con.execute(
        "CREATE TABLE t AS SELECT 'xyz'[1 + i % 3] AS a, 'pq'[1 + i // 3 % 2] AS b, "
        "'c' || IF(i < 100, (i + 1) % 3, i % 3) AS c FROM range(800) AS r(i)"
    )
    made = (
        Attribute("a", "categorical", ("x", "y", "z")),
        Attribute("b", "categorical", ("p", "q")),
    )
    domain = Domain(made, "c", ("c0", "c1", "c2")).bind(dict.fromkeys("abc", VARCHAR))
    true = con.execute("SELECT count(*) FROM t GROUP BY c ORDER BY c").fetchall()
    seen: list[Request] = []
    laplace, unexplained_part = ExactNoise.laplace, auto_rules.unexplained

    def shifted(self: ExactNoise, counts: np.ndarray, epsilon: int, bound: int) -> np.ndarray:
        laplace(self, counts, epsilon, bound)
        return counts + (700 if counts.size == 1 else 5_000)

    def kept(request: Request) -> float:
        seen.append(request)
        return unexplained_part(request)

    run = prepare(
        con, "t", domain=domain, epsilon=1, recipe="log-odds", seed=1, privacy_unit="row",
        ledger=tmp_path / "l",
    )  # fmt: skip
    monkeypatch.setattr(ExactNoise, "laplace", shifted)
    monkeypatch.setattr(auto_rules, "unexplained", kept)
    run.execute()
    assert {r.misclassified for r in seen} == {None, 100 + 700}
    assert {r.histogram for r in seen if r.misclassified == 800} == {
        tuple(number + 5_000 for (number,) in true)
    }
