"""All tables in one release: what a row changes, what comes back, when the default picks it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import record
from steps import adapted, seeded

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess import log_odds as sums_of_log_odds
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.plan import ROW_COUNTS
from dpforest_duckdb.privacy.sampler import MAX_DENOMINATOR
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.ours.auto_rules import MOST
from dpforest_duckdb.recipes.ours.joint_rules import (
    COARSEST,
    few_figures_fit,
    joint_tables_fit,
    out_of_reach,
)
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.table_codes import WHOLE, TableCodes
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.tree import LEAF

NAMES = "abcdefghij"


def attributes(sizes: Sequence[int], *, nullable: bool = False) -> tuple[Attribute, ...]:
    return tuple(
        Attribute(f"c{number}", "categorical", tuple(NAMES[:size]), nullable=nullable)
        for number, size in enumerate(sizes)
    )


def bound(sizes: Sequence[int], classes: int = 2, *, nullable: bool = False) -> Domain:
    made = attributes(sizes, nullable=nullable)
    types = {attribute.name: VARCHAR for attribute in made}
    labels = tuple(f"k{i}" for i in range(classes))
    return Domain(made, "k", labels).bind({**types, "k": VARCHAR})


def filled(domain: Domain, rows: int, seed: int = 0) -> list[np.ndarray]:
    """Tables `[cell, class]` of the same random rows, some in cells outside the domain."""
    random, classes = np.random.default_rng(seed), len(domain.classes)
    label = random.integers(0, classes, rows)
    return [
        np.bincount(
            random.integers(0, attribute.cells, rows) * classes + label,
            minlength=attribute.cells * classes,
        ).reshape(attribute.cells, classes)
        for attribute in domain.attributes
    ]


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    classes=st.integers(2, 4),
    nullable=st.booleans(),
    data=st.data(),
)
def test_a_row_more_changes_each_block_of_its_class_by_one(
    sizes: list[int], classes: int, nullable: bool, data: st.DataObject
) -> None:
    """The norm that the noise is made for: the largest block in L1, and classes add up."""
    domain = bound(sizes, classes, nullable=nullable)
    before = filled(domain, 50)
    label = data.draw(st.integers(0, classes - 1))
    after = [table.copy() for table in before]
    outside = False
    for attribute, table in zip(domain.attributes, after, strict=True):
        cell = data.draw(st.integers(0, attribute.cells - 1))
        outside |= cell not in attribute.described
        table[cell, label] += 1
    codes = TableCodes(domain.attributes)
    change = codes.vectors(after) - codes.vectors(before)
    assert not np.delete(change, label, axis=0).any()
    first = np.cumsum([0, *codes.blocks[:-1]])
    by_block = np.add.reduceat(abs(change[label]), first)
    assert change.shape == (classes, sum(codes.blocks))
    assert by_block.max() <= 1
    assert by_block[0] == 1
    if not outside:
        assert (by_block == 1).all()


@pytest.mark.parametrize("sizes", [[1], [2], [3], [4], [5], [9], [3, 1, 2, 6, 4]])
@pytest.mark.parametrize("nullable", [False, True])
def test_without_noise_the_tables_come_back(sizes: list[int], nullable: bool) -> None:
    domain = bound(sizes, 3, nullable=nullable)
    tables = filled(domain, 500)
    for attribute, table in zip(domain.attributes, tables, strict=True):
        table[attribute.described[0]] += np.delete(table, attribute.described, axis=0).sum(axis=0)
        table[np.setdiff1d(np.arange(attribute.cells), attribute.described)] = 0
    codes = TableCodes(domain.attributes)
    found = codes.tables(codes.vectors(tables).astype(np.float64))
    for attribute, table, same in zip(domain.attributes, tables, found, strict=True):
        assert same == pytest.approx(table[list(attribute.described)])


def test_counts_have_the_deviation_that_the_model_says() -> None:
    domain = bound([1, 2, 3, 4, 5, 7], 4)
    codes, rows = TableCodes(domain.attributes), 1
    size, cost, scale = sum(codes.blocks), NANO // 3, codes.parts(rows)
    nothing = np.zeros((8000, size), dtype=np.int64)
    noisy = ExactNoise(SecureBits()).joint(nothing, codes.blocks, cost, rows * scale) / scale
    assert noisy[:, 0].std() == pytest.approx(codes.deviation_of_totals(cost, rows), rel=0.05)
    for claimed, decoded in zip(codes.deviations(cost, rows), codes.tables(noisy), strict=True):
        assert decoded.std(axis=1) == pytest.approx(claimed, rel=0.06)


def test_tables_of_few_values_cost_far_less_together_than_one_by_one() -> None:
    """Sixteen yes-or-no attributes: a third of the noise of tables that share ε."""
    domain = bound([2] * 16)
    together = TableCodes(domain.attributes).deviations(NANO, 1)[0]
    alone = np.sqrt(2) * 16
    assert together < 0.45 * alone


@pytest.mark.parametrize("rows_per_unit", [1, 3, 10**6])
def test_the_parts_of_a_row_fit_the_sampler(rows_per_unit: int) -> None:
    made = bound([2, 9, 3]).attributes
    scale = TableCodes(made).parts(rows_per_unit)
    assert 8 <= scale <= WHOLE * 9
    assert TableCodes(made[:1]).parts(1) == WHOLE
    assert rows_per_unit * scale * NANO <= MAX_DENOMINATOR


def fill(con: duckdb.DuckDBPyConnection, rows: int, attributes: int = 6) -> Domain:
    """Attributes, each right seven times in ten; a unit has three rows."""
    con.execute("SELECT setseed(0.25)")
    witness = ", ".join(
        f"CASE WHEN (random() < 0.7) = (k = 'k1') THEN 'a' ELSE 'b' END AS c{i}"
        for i in range(attributes)
    )
    con.execute(
        f"CREATE OR REPLACE TABLE t AS SELECT {witness}, k, i // 3 AS u FROM "
        "(SELECT i, CASE WHEN random() < 0.5 THEN 'k1' ELSE 'k0' END AS k "
        f"FROM range({rows}) AS r(i))"
    )
    return bound([2] * attributes)


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_the_noise_is_given_what_the_plan_says(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rows_per_unit: int,
) -> None:
    domain = fill(con, 900)
    given_ = record(monkeypatch)
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        run = prepare(
            con, "t", epsilon="0.5", domain=domain, recipe="joint-tables", seed=1,
            privacy_unit="u", rows_per_unit=rows_per_unit, ledger=tmp_path / "l",
        )  # fmt: skip
        forest = run.execute()
    plan = find("joint-tables").plan(run.request)
    rows, tables = plan.query("rows"), plan.query("tables")
    assert rows is not None
    assert tables is not None
    assert plan.epsilon == NANO // 2
    (asked,) = [call for call in given_ if call.mechanism == "joint"]
    assert list(asked.blocks) == [1] * 7
    assert asked.cost == tables.total
    assert asked.bound == rows_per_unit * TableCodes(domain.attributes).parts(rows_per_unit)
    # what is noised is the vectors in the parts that the bound is in
    assert asked.private[:, 0].sum() == 300 * asked.bound
    assert [line.split(":")[0] for line in forest.guarantee.plan] == [*ROW_COUNTS, "tables"]


def test_every_attribute_has_its_tree_behind_the_rows(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    domain = fill(con, 2000)
    forest = fit(con, "t", domain=domain, recipe="joint-tables")
    first, *others = forest.trees
    assert first.kind.tolist() == [LEAF]
    assert [int(tree.attribute[0]) for tree in others] == list(range(6))
    assert first.counts is not None
    assert first.noise is not None
    assert abs(first.counts.sum() - 2000) < 10 * first.noise[0]
    assert first.noise[0] == pytest.approx(np.sqrt(8 * 9 / 3) / 0.96, rel=0.05)
    ((right,),) = forest.predict(con, "t").aggregate("avg(CAST(prediction = k AS INT))").fetchall()
    assert right > 0.78


@pytest.mark.parametrize("classes", [2, 3])
def test_sums_are_less_sure_where_attributes_repeat_each_other(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], classes: int
) -> None:
    """Three attributes that equal the class: each should count a third.

    A value that decides the class has log-odds far above 1 at 3,000 rows.
    """
    con.execute(
        f"CREATE TABLE t AS SELECT 'k' || i % {classes} AS k, 'v' || i % {classes} AS c0, "
        f"'v' || i % {classes} AS c1, 'v' || i % {classes} AS c2 FROM range(3000) AS r(i)"
    )
    values = tuple(f"v{n}" for n in range(classes))
    made = tuple(Attribute(f"c{n}", "categorical", values, nullable=False) for n in range(3))
    domain = Domain(made, "k", tuple(f"k{n}" for n in range(classes)))
    together = fit(con, "t", domain=domain, recipe="joint-tables", epsilon=1, seed=0)
    alone = fit(
        con, "t", domain=domain.without(["c1", "c2"]), recipe="joint-tables", epsilon=1, seed=0
    )
    strongest = [
        max(float(np.ptp(tree.votes, axis=1).max()) for tree in forest.trees)
        for forest in (together, alone)
    ]
    ratio = strongest[0] / strongest[1]
    assert 0.2 < ratio < 0.45


def test_the_weight_of_overlapping_attributes_multiplies_all_log_odds(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that every row gets too, so that predictions stay the same."""
    domain = fill(con, 900)
    votes = {}
    for weight in (1.0, 0.25):
        monkeypatch.setattr(sums_of_log_odds, "overlap_weight", lambda found, w=weight: w)
        forest = fit(con, "t", domain=domain, recipe="joint-tables", seed=3)
        votes[weight] = [tree.votes for tree in forest.trees]
    assert all(np.abs(each).max() > 10_000 for each in votes[1.0][:2])
    for whole, quarter in zip(votes[1.0], votes[0.25], strict=True):
        assert np.abs(whole / 4 - quarter).max() <= 1000, "votes are rounded to thousandths"


def test_the_default_releases_all_tables_and_with_more_rows_below_roots(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    domain = fill(con, 900)
    purposes = {}
    for epsilon in (0.001, 0.5, 100):
        forest = fit(con, "t", domain=domain, epsilon=epsilon, seed=2)
        purposes[epsilon] = {line.split(",")[0] for line in forest.guarantee.plan}
    together = "tables: joint noise"
    assert {line.split(":")[0] for line in purposes[0.5]} == {*ROW_COUNTS, "tables"}
    assert all(together in each for each in purposes.values())
    rooted = [epsilon for epsilon, each in purposes.items() if any("root:" in p for p in each)]
    assert rooted == [100]
    few = fit(con, "t", domain=domain, epsilon=0.5, trees=2)
    assert len(few.trees) <= 3, "at most as many attributes as were asked for"


@pytest.mark.parametrize(
    ("classes", "rows", "fits"), [(2, 450, True), (2, 50, True), (3, 1200, True), (3, 800, False)]
)
def test_tables_of_few_ordered_attributes_are_released_together_in_more_noise(
    classes: int, rows: int, fits: bool
) -> None:
    ten = tuple(Attribute(f"a{n}", "numeric", lower=1, upper=10) for n in range(9))
    domain = Domain(ten, "k", tuple(f"c{n}" for n in range(classes)))
    domain = domain.bind({**{each.name: INTEGER for each in ten}, "k": VARCHAR})
    few = Request(domain=domain, epsilon=NANO // 10, trees=9, depth=1, rows=rows)
    assert few_figures_fit(few) == joint_tables_fit(few) == fits
    assert not joint_tables_fit(replace(few, epsilon=NANO // 1000)), "too much noise"


def test_tables_of_real_numbers_get_another_recipe(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT (random() * 100)::DOUBLE AS x, (random() * 10)::DOUBLE AS y, "
        "'c' || (i % 2) AS k FROM range(900) AS r(i)"
    )
    made = tuple(Attribute(name, "numeric", lower=0, upper=100) for name in "xy")
    domain = Domain(made, "k", ("c0", "c1")).bind({"x": DOUBLE, "y": DOUBLE, "k": VARCHAR})
    forest = fit(con, "t", domain=domain, epsilon=0.5)
    assert not any(line.startswith("tables: joint noise,") for line in forest.guarantee.plan)


def test_several_classes_out_of_reach_get_their_most_frequent(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """120 rows of five classes at ε = .08: the only query is for the rows of each class."""
    con.execute(
        "CREATE TABLE t AS SELECT 'abcdefghij'[1 + i % 10] AS c0, 'abcd'[1 + i % 4] AS c1, "
        "CASE WHEN i % 10 < 8 THEN 'k0' ELSE 'k' || (1 + i % 4) END AS k FROM range(120) AS r(i)"
    )
    forest = fit(con, "t", domain=bound([10, 4], 5), epsilon=0.08)
    assert len(forest.trees) == 1
    (tree,) = forest.trees
    assert tree.noise is not None
    assert tree.noise[0] == pytest.approx(np.sqrt(2) / 0.0768, rel=0.1)
    assert any(line.startswith("tables") for line in forest.guarantee.plan)
    assert set(forest.predict(con, "t").select("prediction").fetchall()) == {("k0",)}


@pytest.mark.parametrize(("rows", "reached"), [(340, False), (370, True)])
def test_tables_are_out_of_reach_below_half_the_scale_of_their_noise(
    rows: int, reached: bool
) -> None:
    """Of ε = .1 a table gets 70 %, so the scale is 14.3. There are five classes and ten cells."""
    assert 340 / 5 / 10 < 1 / 0.07 / 2 < 370 / 5 / 10
    request = replace(find("auto").request(bound([10, 10], 5), NANO // 10), rows=rows)
    assert out_of_reach(request) == (not reached)


def sized(request: Request, rows: int) -> Request:
    noise = ExactNoise(seeded(rows).bits)
    recipe = find("joint-tables")
    account = Accountant(recipe.plan(request), request.epsilon, 0)
    class_counts = np.array([rows] + [0] * (len(request.domain.classes) - 1))
    followed, settled = adapted(class_counts, recipe, request, account, noise)
    assert followed is recipe
    assert account.plan.epsilon == request.epsilon
    return settled


@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_attributes_are_cut_more_finely_if_there_are_more_rows(epsilon: float) -> None:
    made = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=99) for i in range(3))
    types = {attribute.name: INTEGER for attribute in made}
    domain = Domain(made, "k", ("a", "b")).bind({**types, "k": VARCHAR})
    request = find("joint-tables").request(domain, int(epsilon * NANO))
    cells = [sized(request, rows).domain.attributes[0].proper for rows in (0, 9000, 10**7)]
    assert cells == sorted(cells)
    assert cells[0] == COARSEST + 1
    assert cells[0] < cells[2] <= MOST + 1


def test_rows_outside_the_domain_are_in_no_sum(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    domain = fill(con, 900)
    con.execute("UPDATE t SET c0 = 'elsewhere', c1 = NULL")
    forest = fit(con, "t", domain=domain, recipe="joint-tables", epsilon=5)
    for tree in forest.trees[1:3]:
        assert tree.counts is not None
        assert tree.noise is not None
        assert np.isnan(tree.noise).tolist() == [False, False, False, True]
        assert not tree.counts[3:].any(), "what the domain does not speak of stays unsaid"
    hidden = [
        row["counts"] is None for row in forest.rules() if row["leaf"] and "c0" in row["rule"]
    ]
    assert hidden == [False, False, True]


def test_rows_are_coded_once_for_all_tables(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Else the temporary space of a copy for each tree would be announced, or refused."""
    domain = fill(con, 30)
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        space = {
            trees: prepare(
                con, "t", epsilon=1, domain=domain, recipe="joint-tables", trees=trees, seed=1,
                ledger=tmp_path / "l",
            ).bytes_of_a_row
            for trees in (1, 6)
        }  # fmt: skip
    assert space[1] == space[6]
